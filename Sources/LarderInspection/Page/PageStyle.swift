/// The style sheet of the page, and its icon.
enum PageStyle {
  /// One scale of type (12, 14, 18, 24 px), and one of distances (4, 8, 16, 24, 32 px).
  ///
  /// States have the colours of a terminal: green for fresh, yellow for stale, red for damaged, and
  /// grey for expired. Every text has a contrast of at least 4.5 to what is behind it.
  static let sheet = """
    :root {
      color-scheme: light dark;
      --ground: #ffffff; --sheet: #f5f6f8; --line: #d9dde3; --text: #1c2128; --quiet: #59636e;
      --link: #0757c4; --bar: #4f8de0; --good: #157a35; --aging: #8a5a00; --bad: #c11f2b;
      --gone: #656d76; --shade0: #2f6fc0; --shade1: #2b7f86; --shade2: #6a5fb8; --shade3: #8a5a82;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --ground: #14171c; --sheet: #1d2229; --line: #363d47; --text: #e4e8ee; --quiet: #9aa5b1;
        --link: #79b4ff; --bar: #3f75bd; --good: #56c271; --aging: #dfae3a; --bad: #ff7b72;
        --gone: #98a2ad; --shade0: #2c5f9e; --shade1: #286d73; --shade2: #5a5199; --shade3: #754c6e;
      }
    }
    * { box-sizing: border-box; }
    html { background: var(--ground); color: var(--text); }
    body {
      margin: 0 auto; padding: 0 24px 32px; max-width: 1440px;
      font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
    }
    a { color: var(--link); text-underline-offset: 2px; }
    a:focus-visible, summary:focus-visible, .scroll:focus-visible, .follow:focus-visible,
    pre:focus-visible, .long:focus-visible, input:focus-visible,
    select:focus-visible, button:focus-visible {
      outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px;
    }
    code, pre, .name, .json { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
    code, .name { font-size: 14px; overflow-wrap: anywhere; }
    .skip { position: absolute; left: -999px; }
    .skip:focus { left: 8px; top: 8px; padding: 8px; background: var(--ground); }

    header { border-bottom: 1px solid var(--line); margin-bottom: 24px; padding-top: 16px; }
    .store { margin: 0; font-size: 18px; overflow-wrap: anywhere; }
    .store span { margin-left: 8px; color: var(--quiet); font-size: 12px; }
    nav ul { display: flex; flex-wrap: wrap; gap: 0 16px; margin: 8px 0 0; padding: 0;
      list-style: none; }
    nav a { display: block; padding: 8px 0; color: var(--quiet); text-decoration: none;
      border-bottom: 2px solid transparent; }
    nav a:hover { color: var(--text); }
    nav a[aria-current] { color: var(--text); border-color: var(--link); font-weight: 600; }
    .moment { margin: 0; padding: 8px 0; color: var(--quiet); font-size: 12px; }

    h1 { margin: 0 0 16px; font-size: 24px; line-height: 32px; font-weight: 600; }
    h2 { margin: 32px 0 8px; font-size: 18px; line-height: 24px; font-weight: 600; }
    p { margin: 0 0 16px; max-width: 90ch; }
    .note, small { color: var(--quiet); font-size: 12px; }

    .facts { display: grid; grid-template-columns: minmax(80px, max-content) 1fr; gap: 4px 16px;
      margin: 0 0 16px; }
    .facts dt { grid-column: 1; color: var(--quiet); }
    .facts dd { grid-column: 2; margin: 0; min-width: 0; overflow-wrap: anywhere; }
    .long { display: block; max-height: 12em; overflow-y: auto; }

    .scroll { overflow-x: auto; margin: 0 0 16px; }
    table { border-collapse: collapse; }
    table.bars { width: 100%; }
    .bars th, .bars td { width: 1%; }
    th { color: var(--quiet); font-weight: 600; font-size: 12px; white-space: nowrap; }
    thead th, thead td { border-bottom: 1px solid var(--line); }
    th, td { padding: 4px 16px 4px 0; text-align: left; vertical-align: baseline; }
    th:last-child, td:last-child { padding-right: 0; }
    tbody td { border-bottom: 1px solid var(--sheet); }
    tbody tr:hover { background: var(--sheet); }
    .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
    td.name { min-width: 12ch; }
    td.name:last-child, .bars td.name { min-width: 28ch; }
    td.t { white-space: nowrap; }
    .bars .barcell { width: auto; min-width: 96px; }
    .bar { display: block; width: 100%; height: 8px; }
    .bar rect { fill: var(--bar); }
    .states rect { fill: currentColor; }

    .good { color: var(--good); } .aging { color: var(--aging); }
    .bad { color: var(--bad); } .gone { color: var(--gone); }
    .facts dt.bad { color: var(--bad); } .facts dt.aging { color: var(--aging); }
    .facts dt.good { color: var(--good); }
    .dot::before { content: ""; display: inline-block; width: 8px; height: 8px; margin-right: 8px;
      border-radius: 50%; background: currentColor; }

    .error { padding: 16px; border-left: 4px solid var(--bad); background: var(--sheet);
      overflow-wrap: anywhere; }
    .progress { color: var(--quiet); font-variant-numeric: tabular-nums; }
    .progress:not(:last-child) { display: none; }

    form { display: flex; flex-wrap: wrap; gap: 16px; align-items: end; margin: 0 0 16px;
      padding: 16px; background: var(--sheet); border-radius: 4px; }
    fieldset { margin: 0; padding: 0; border: 0; }
    legend { padding: 0; }
    label, legend { color: var(--quiet); font-size: 12px; }
    fieldset label { margin-right: 8px; font-size: 14px; color: var(--text); white-space: nowrap; }
    form .field { display: grid; gap: 4px; }
    input, select, button { font: inherit; color: var(--text); background: var(--ground);
      border: 1px solid var(--gone); border-radius: 4px;
      height: 32px; padding: 4px 8px; max-width: 100%; }
    input[type=checkbox] { height: auto; padding: 0; margin: 0 4px 0 0; vertical-align: -1px; }
    button { background: var(--link); border-color: var(--link); color: var(--ground);
      cursor: pointer; }
    .more { display: flex; flex-wrap: wrap; gap: 16px; }

    .treemap, .timeline { display: block; width: 100%; min-width: 640px; height: auto;
      margin: 0 0 16px; }
    .treemap text { fill: #ffffff; font-size: 14px; }
    .treemap text.size { font-size: 12px; }
    .treemap a:hover rect, .treemap a:focus-visible rect { opacity: 0.85; stroke: var(--text);
      stroke-width: 2; }
    .shade0 { fill: var(--shade0); } .shade1 { fill: var(--shade1); }
    .shade2 { fill: var(--shade2); } .shade3 { fill: var(--shade3); }
    .timeline text { fill: var(--quiet); font-size: 12px; }
    .timeline .freshspan { fill: var(--good); } .timeline .stalespan { fill: var(--aging); }
    .timeline .gonespan { fill: var(--gone); opacity: 0.5; }
    .timeline .now { stroke: var(--text); stroke-width: 2; }
    .timeline .nowtext { fill: var(--text); font-weight: 600; }

    pre { overflow-x: auto; margin: 0 0 16px; padding: 16px; background: var(--sheet);
      border-radius: 4px; }
    .json { margin: 0 0 16px; padding: 16px; background: var(--sheet); border-radius: 4px;
      overflow-wrap: anywhere; }
    .json ul { margin: 0; padding-left: 24px; list-style: none; }
    .json summary { cursor: pointer; }
    .json .key { color: var(--link); } .json .string { color: var(--good); }
    .json .number, .json .word { color: var(--aging); }
    .picture { display: block; max-width: 100%; max-height: 480px; margin: 0 0 16px;
      border: 1px solid var(--line); }
    .follow { max-height: 70vh; overflow: auto; display: flex; flex-direction: column-reverse; }
    .follow .scroll { overflow: visible; }
    .follow th { position: sticky; top: 0; background: var(--ground); }

    @media (max-width: 640px) {
      body { padding: 0 16px 24px; }
      .store span { display: block; margin: 0; }
      .facts { grid-template-columns: 1fr; gap: 0; }
      .facts dt, .facts dd { grid-column: 1; }
      .facts dd { margin-bottom: 8px; }
      td.name:last-child, .bars td.name { min-width: 16ch; }
    }
    """

  static let icon = """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">\
    <rect x="1" y="2" width="14" height="3" fill="#0757c4"/>\
    <rect x="1" y="6.5" width="14" height="3" fill="#157a35"/>\
    <rect x="1" y="11" width="14" height="3" fill="#8a5a00"/></svg>
    """
}
