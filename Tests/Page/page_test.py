"""The page of `kvinspect serve` in a browser: `make page-test` runs this.

Each view is opened at three widths, light and dark, without a script of its own, and examined with
axe. `--screenshots DIR` keeps a picture of each. Needs Chromium, Playwright and axe-core-python.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

arguments = argparse.ArgumentParser()
arguments.add_argument("--products", required=True, help="the folder of kvinspect and page-store")
arguments.add_argument("--chromium", default="/usr/bin/chromium")
arguments.add_argument("--screenshots", help="a folder for pictures of the views")
options, rest = arguments.parse_known_args()

NOW = "2026-11-29T12:00:00Z"
# A name for pictures, an address, and the heading of the view.
VIEWS = [
    ("overview", "", "Overview"),
    ("entries", "entries", "Entries"),
    ("filtered", "entries?cache=odd+%3Cb%3E%26", "Entries"),
    ("json", "entry?cache=feed&key=page/9", "Entry"),
    ("image", "entry?cache=images&key=https://example.com/covers/3.png", "Entry"),
    ("binary", "entry?cache=blobs&key=binary", "Entry"),
    ("damaged", "entry?cache=odd+%3Cb%3E%26&key=damaged", "Entry"),
    ("places", "entry?cache=notes&key=text&places=1", "Entry"),
    ("expiry", "expiry", "Expiry"),
    ("space", "space", "Space"),
    ("compare", "compare", "Compare"),
]
WIDTHS = [360, 1280, 3840]


def program(name):
    return os.path.join(options.products, name)


class Server:
    """A running `kvinspect serve` of a store that `page-store` made."""

    def __init__(self, *words, compare=None, parent=None):
        self.directory = tempfile.TemporaryDirectory()
        # The path is in pictures of the page.
        self.store = os.path.join(parent or self.directory.name, "larder")
        subprocess.run([program("page-store"), self.store, *words], check=True, timeout=300)
        more = ["--compare", compare] if compare else []
        self.process = subprocess.Popen(
            [program("kvinspect"), "serve", self.store, "--quiet", "--now", NOW, *more],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": self.directory.name})
        self.address = self.process.stdout.readline().strip()

    def command(self, *words):
        """What a command of kvinspect writes about the store, as JSON."""
        result = subprocess.run(
            [program("kvinspect"), words[0], self.store, *words[1:], "--now", NOW, "--format",
             "json"], stdout=subprocess.PIPE, text=True, timeout=300)
        return json.loads(result.stdout)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.process.stdout.close()
        shutil.rmtree(self.store)
        self.directory.cleanup()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.other = Server("entries", "10")
        cls.server = Server(
            "specimen", NOW, compare=cls.other.store, parent=options.screenshots)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.close()
        cls.other.close()

    def open(self, view="", server=None, **settings):
        """A page with a view, whose faults end the test."""
        settings.setdefault("java_script_enabled", False)
        context = self.browser.new_context(**settings)
        self.addCleanup(context.close)
        page = context.new_page()
        self.faults = []
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: (self.faults.append("a dialog"), dialog.dismiss()))
        page.on("requestfailed", lambda request: self.is_left_icon(request) or self.faults.append(
            f"{request.failure}: {request.url}"))
        page.on("response", lambda answer: answer.status >= 400 and self.faults.append(
            f"{answer.status}: {answer.url}"))
        page.goto((server or self.server).address + view)
        return page

    def is_left_icon(self, request):
        """Whether the page was left before its icon had arrived, so that the browser aborted it."""
        return request.failure == "net::ERR_ABORTED" and request.url.endswith("/icon.svg")

    def rows(self, page, table=0):
        return [[cell.strip() for cell in row.locator("td").all_inner_texts()]
                for row in page.locator("table").nth(table).locator("tbody tr").all()]

    def test_views(self):
        """Each view fits each width, light and dark, and axe finds nothing serious in it."""
        axe = Axe()
        for scheme in ["light", "dark"]:
            for width in WIDTHS:
                for name, view, heading in VIEWS:
                    with self.subTest(name, width=width, scheme=scheme):
                        # With scripts, for axe; the page has none.
                        page = self.open(
                            view, java_script_enabled=True, color_scheme=scheme,
                            viewport={"width": width, "height": 900})
                        self.assertEqual(page.locator("h1").inner_text(), heading)
                        self.assertEqual(page.locator("script").count(), 0)
                        self.assertLessEqual(
                            page.evaluate("() => document.documentElement.scrollWidth"), width)
                        if options.screenshots:
                            page.screenshot(full_page=True, path=os.path.join(
                                options.screenshots, f"{name}-{width}-{scheme}.png"))
                        if width != 3840:
                            found = axe.run(page)["violations"]
                            self.assertEqual([
                                (fault["id"], [node["html"] for node in fault["nodes"]][:3])
                                for fault in found
                                if fault["impact"] in ("serious", "critical")], [])
                        self.assertEqual(self.faults, [])
                        page.context.close()

    def test_filter_and_order(self):
        """A filter by form selects what `ls` selects, in its order."""
        page = self.open("entries")
        page.get_by_label("Cache").select_option("feed")
        page.get_by_label("stale").check()
        page.get_by_label("Order").select_option("ttl")
        page.get_by_role("button", name="Filter").click()
        found = [row[6] for row in self.rows(page)]
        expected = self.server.command(
            "ls", "--cache", "feed", "--state", "stale", "--sort", "ttl")["records"]
        self.assertEqual(found, [record["key"] for record in expected])
        self.assertGreater(len(found), 10)
        # The form shows what was chosen.
        self.assertTrue(page.get_by_label("stale").is_checked())
        page.get_by_label("Keys match").fill("page/1?")
        page.get_by_role("button", name="Filter").click()
        self.assertTrue(all(row[6].startswith("page/1") for row in self.rows(page)))
        self.assertEqual(self.faults, [])

    def test_paging(self):
        """Continue shows every entry once."""
        page = self.open("entries")
        keys = []
        while True:
            keys += [(row[5], row[6]) for row in self.rows(page)]
            more = page.get_by_role("link", name="Continue")
            if more.count() == 0:
                break
            more.click()
        records = self.server.command("ls")["records"]
        self.assertEqual(len(keys), len(records))
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(self.faults, [])

    def test_entry_of_each_kind(self):
        """Each entry that a list links to has a page, whatever its key and its value are."""
        page = self.open("entries?cache=odd+%3Cb%3E%26")
        links = page.locator("td:last-child a")
        self.assertEqual(links.count(), 10)
        for number in range(links.count()):
            key = links.nth(number).inner_text()
            links.nth(number).click()
            expect(page.locator("h1")).to_have_text("Entry")
            expect(page.locator("main")).to_contain_text("state")
            if len(key) < 100:
                expect(page.locator("dl.facts").first).to_contain_text(key)
            page.go_back()
        self.assertEqual(self.faults, [])

    def test_entry_texts(self):
        """Entries that are not as they should be say why; payloads are shown by their kind."""
        odd = "entry?cache=odd+%3Cb%3E%26&key="
        for view, texts in {
            odd + "damaged": ["every read throws corrupt", "Stored bytes"],
            odd + "newer": ["every read throws incompatible"],
            odd + "expired": ["it expired 13d ago"],
            odd + "tagged": ["a tag was invalidated after the save: season"],
            "entry?cache=notes&key=text": ["The first line,\nand the second one."],
            "entry?cache=blobs&key=in+a+segment": ["The rest is not shown", ".seg"],
            "entry?cache=wide&key=many+numbers": ["[ ] 20,000", "The rest is not shown"],
            "entry?cache=users&key=01020304-0506-0708-090A-0B0C0D0E0F03": ["visits: 3"],
        }.items():
            page = self.open(view)
            for text in texts:
                self.assertIn(text, page.locator("main").inner_text(), view)
            self.assertEqual(self.faults, [])
        page = self.open("entry?cache=images&key=https://example.com/covers/3.png")
        picture = page.locator("img")
        self.assertEqual(picture.evaluate("image => [image.naturalWidth, image.naturalHeight]"),
                         [96, 64])

    def test_expiry_sums(self):
        """The sums of Expiry are those of `ttl --format json`."""
        report = self.server.command("ttl")
        sums = {}
        for span in report["spans"]:
            sums[span["expires"]] = sums.get(span["expires"], 0) + span["records"]
        page = self.open("expiry")
        shown = {row[0]: int(row[1].replace(",", "")) for row in self.rows(page)}
        self.assertEqual(shown, sums)
        self.assertEqual(sum(shown.values()), len(self.server.command("ls")["records"]))
        self.assertIn(f"{report['backlogRecords']} records", page.locator("dl.facts").inner_text())
        page.get_by_role("link", name="The next to expire").click()
        first = self.server.command("ls", "--sort", "ttl", "--limit", "20")["records"]
        self.assertEqual([row[6] for row in self.rows(page)][:20],
                         [record["key"] for record in first])

    def test_space(self):
        """Each rectangle leads to its entries."""
        page = self.open("space")
        page.locator("svg.treemap a").nth(2).click()
        expect(page.locator("h1")).to_have_text("Entries")
        self.assertGreater(len(self.rows(page)), 0)
        self.assertEqual(self.faults, [])

    def test_watch(self):
        """Watch shows a save within a second, and the end of a long list is in view."""
        server = Server("entries", "10")
        self.addCleanup(server.close)
        writer = subprocess.Popen(
            [program("page-store"), server.store, "save"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)
        self.assertEqual(writer.stdout.readline(), "open\n")
        context = self.browser.new_context(java_script_enabled=False)
        self.addCleanup(context.close)
        page = context.new_page()
        # The page never ends.
        page.goto(server.address + "watch", wait_until="commit")
        expect(page.locator("th").first).to_have_text("Change")
        for number in range(60):
            writer.stdin.write(f"key {number}\n")
            self.assertEqual(writer.stdout.readline(), "saved\n")
        last = page.get_by_role("link", name="key 59")
        expect(last).to_be_in_viewport(timeout=1000)
        expect(page.locator("th").first).to_be_in_viewport()
        # It is newer than the snapshot, and its page shows it nevertheless.
        last.click()
        expect(page.locator("h1")).to_have_text("Entry")
        expect(page.locator("main")).to_contain_text("it is fresh for another")
        writer.stdin.close()
        writer.wait(timeout=60)
        writer.stdout.close()

    def test_keyboard(self):
        """Every view can be reached and used by the keyboard alone."""
        page = self.open()
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Entries", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Entries")
        page.get_by_label("Key", exact=True).focus()
        page.keyboard.type("page/9")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Entry")
        summary = page.locator("summary").first
        summary.focus()
        self.assertIsNotNone(page.locator("details").first.get_attribute("open"))
        page.keyboard.press("Enter")
        self.assertIsNone(page.locator("details").first.get_attribute("open"))
        self.assertEqual(self.faults, [])

    def test_refresh(self):
        """A new snapshot is taken where the reader is."""
        page = self.open("expiry?cache=feed")
        page.get_by_role("link", name="Take a new one").click()
        self.assertTrue(page.url.endswith("/expiry?cache=feed"))
        self.assertEqual(self.faults, [])

    def test_other_sites(self):
        """A page from elsewhere learns nothing: no frame, no picture, no name that points here."""
        port = self.server.address.split(":")[2].split("/")[0]
        browser = self.playwright.chromium.launch(
            executable_path=options.chromium, args=[
                "--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"])
        self.addCleanup(browser.close)
        page = browser.new_page()
        address = self.server.address.replace("127.0.0.1", "evil.example")
        self.assertEqual(page.goto(address).status, 403)
        self.assertNotIn("feed", page.content())
        page.set_content(f"<iframe src='{self.server.address}'></iframe>")
        frame = page.frames[-1]
        frame.wait_for_load_state()
        self.assertNotIn("Overview", frame.content())
        self.assertEqual(page.goto(f"http://127.0.0.1:{port}/").status, 404)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
