// Runs the public tests of HTTP caches against a URL, and compares with Differences.txt which of the
// tests that ask for something do not pass. `node check.mjs SUITE URL DIFFERENCES`
import fs from 'node:fs'
import path from 'node:path'

const [suite, url, list] = process.argv.slice(2)
const from = file => import(path.resolve(suite, file))
const tests = (await from('tests/index.mjs')).default
const { runTests, getResults } = await from('test-engine/client/runner.mjs')
const { determineTestResult, resultTypes } = await from('test-engine/lib/results.mjs')

await runTests(tests, false, url)
const results = getResults()
const outcomes = new Map()
let passed = 0
for (const test of tests.flatMap(suite => suite.tests)) {
  const kind = test.kind ?? 'required'
  // The others ask how a cache does something, and not that it does it.
  if (kind === 'check' || !(test.id in results)) continue
  const outcome = determineTestResult(tests, test.id, results)
  if (outcome === resultTypes.pass) passed += 1
  // Those that depend on a test that does not pass say nothing.
  else if (outcome !== resultTypes.dependency_fail) outcomes.set(test.id, results[test.id][1])
}

// A line of the list is an id and the reason, or a comment.
const expected = new Set()
for (const line of fs.readFileSync(list, 'utf8').split('\n')) {
  if (line && !line.startsWith('#')) expected.add(line.split(/:? /)[0])
}
const news = [...outcomes].filter(([id]) => !expected.has(id))
const gone = [...expected].filter(id => !outcomes.has(id))
for (const [id, why] of news) console.log(`does not pass: ${id}: ${why}`)
for (const id of gone) console.log(`is in the list, but passes: ${id}`)
console.log(`${passed} tests pass; ${outcomes.size} do not, of which ${news.length} are not in the list`)
process.exit(news.length + gone.length === 0 ? 0 : 1)
