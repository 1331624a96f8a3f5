/** Styles of the viewer's page: light and dark, wide and narrow. */
export const STYLE = `
:root { color-scheme: light dark; --bg: #fbfbfa; --panel: #fff; --ink: #1d2126; --soft: #5d6670; --line: #d9dde2; --accent: #0b62c4;
  --good: #14763a; --bad: #b3261e; --warn: #8a5a00; --mark: #fff3c4; --plus: 20 118 58; --minus: 179 38 30;
  --d-red: #c62a22; --d-green: #16803c; --d-blue: #2563c9; --d-purple: #8a3fc4; --d-yellow: #a87900; --d-grey: #8b939c; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --bg: #14171b; --panel: #1b1f25; --ink: #e4e8ec; --soft: #9aa4af; --line: #333a43;
  --accent: #7ab7ff; --good: #6bd08f; --bad: #ff8f86; --warn: #f0c060; --mark: #4a4012; --plus: 80 190 120; --minus: 240 110 100;
  --d-red: #ff6b60; --d-green: #4fca78; --d-blue: #6ea8ff; --d-purple: #c58bf2; --d-yellow: #f2c94c; --d-grey: #6d7681; } }
:root[data-theme=dark] { color-scheme: dark; --bg: #14171b; --panel: #1b1f25; --ink: #e4e8ec; --soft: #9aa4af; --line: #333a43;
  --accent: #7ab7ff; --good: #6bd08f; --bad: #ff8f86; --warn: #f0c060; --mark: #4a4012; --plus: 80 190 120; --minus: 240 110 100;
  --d-red: #ff6b60; --d-green: #4fca78; --d-blue: #6ea8ff; --d-purple: #c58bf2; --d-yellow: #f2c94c; --d-grey: #6d7681; }
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
html { background: var(--bg); }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center; padding: .6rem 1rem; border-bottom: 1px solid var(--line); background: var(--panel); position: sticky; top: 0; z-index: 5; }
header h1 { font-size: 1rem; margin: 0 .5rem 0 0; }
nav { display: flex; gap: .25rem; }
nav a { padding: .3rem .7rem; border-radius: 6px; color: inherit; text-decoration: none; }
nav a[aria-current=page] { background: var(--accent); color: var(--panel); }
header .end { margin-left: auto; min-width: 0; max-width: 100%; display: flex; gap: .5rem; align-items: center; }
main { padding: 1rem; max-width: 1500px; margin: 0 auto; }
a { color: var(--accent); }
button, select, input { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .25rem .55rem; max-width: 100%; }
select { max-width: min(100%, 15rem); } label { display: flex; align-items: center; gap: .3rem; min-width: 0; max-width: 100%; } select, input { min-width: 0; }
button:disabled { opacity: .45; }
main:focus { outline: none; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.muted { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.row { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; margin: 0 0 .8rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr)); gap: .9rem; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .8rem; min-width: 0; }
.card h2, .card h3 { margin: 0 0 .4rem; font-size: .95rem; }
.card h3 { font-size: .85rem; color: var(--soft); font-weight: 600; } .card h3.next { margin-top: .8rem; }
.card h2 .over { font-weight: 400; color: var(--soft); }
.title { margin: 0; font-size: 1.05rem; outline-offset: 3px; }
.outcome { font-weight: 600; } strong.outcome { border: 1px solid currentColor; border-radius: 999px; padding: .05rem .6rem; }
mark { background: var(--mark); color: inherit; border-radius: 2px; outline: 1px solid var(--warn); }
.evaluations { margin-bottom: .9rem; } .evaluations table { font-size: .92rem; } .evaluations :is(th, td) { padding: .28rem .45rem; } .evaluations tbody tr:last-child > * { border-bottom: 0; } .evaluations th[scope=row] { font-weight: 600; }
tbody.plain tr { cursor: auto; }
.interval { position: relative; display: inline-block; width: 5rem; height: .7em; margin-right: .6rem; border-radius: 3px; background: var(--line); overflow: hidden; vertical-align: -.03em; }
.interval span { display: block; height: 100%; background: var(--accent); opacity: .55; } .interval i { position: absolute; top: calc(50% - 1px); height: 2px; background: var(--ink); }
.choices { display: contents; } #search { flex: 0 1 16rem; }
td.found { white-space: normal; min-width: 18rem; max-width: 34rem; overflow-wrap: anywhere; font-size: .9rem; }
.below { margin-top: .7rem; }
.state > p { margin: 0 0 .4rem; }
.screenshot { display: block; width: 100%; border: 1px solid var(--line); border-radius: 8px; margin: 0 0 .7rem; }
.answer { margin-bottom: .8rem; }
.shares { list-style: none; margin: .2rem 0 .4rem; padding: 0; font-size: .88rem; }
.shares li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 .6rem; margin: .2rem 0; }
.shares .name { overflow-wrap: anywhere; white-space: pre-wrap; } .shares .taken .name { font-weight: 700; }
.shares .share { font-variant-numeric: tabular-nums; }
.shares .track { grid-column: 1 / -1; height: 6px; border-radius: 3px; background: var(--line); overflow: hidden; }
.shares .track span { display: block; height: 100%; background: var(--soft); } .shares .taken .track span { background: var(--accent); }
.policy > p, .policy div > p { margin: 0; font-size: .88rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem .8rem; margin: .3rem 0 0; padding: 0; list-style: none; font-size: .85rem; }
.swatch.dot { border-radius: 50%; } .swatch.ring { mask: radial-gradient(circle, transparent 38%, #000 42%); } .swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; vertical-align: -.05em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .28rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.n, th.n { text-align: right; }
th button { border: 0; background: none; padding: 0; font-weight: 600; color: inherit; cursor: pointer; }
tbody tr[aria-selected=true] { background: var(--mark); }
tbody tr { cursor: pointer; }
pre, .mono { font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
.episode { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: .9rem; align-items: start; }
.turns { display: flex; flex-wrap: wrap; gap: 3px; margin: 0 0 .8rem; }
.turns button { min-width: 2.1rem; padding: .15rem .3rem; }
.turns button[aria-current=step] { outline: 2px solid var(--accent); outline-offset: 0; font-weight: 700; }
.turns .found { border-color: var(--warn); border-width: 2px; font-weight: 700; }
.turns .reward { box-shadow: inset 0 -3px 0 var(--good); }
.conversation { list-style: none; margin: .5rem 0 0; padding: 0; }
.conversation li { border-left: 3px solid var(--line); margin: .5rem 0; padding: .1rem .7rem; }
.conversation .assistant { border-left-color: var(--accent); } .conversation .system { border-left-color: var(--warn); }
.conversation .tool { border-left-color: var(--good); }
.calls { table-layout: fixed; } .calls td { white-space: normal; vertical-align: top; }
.words { margin: .2rem 0; }
.action { font-weight: 600; }
.token { border-radius: 3px; white-space: pre-wrap; }
.candidates { margin: 0; padding-left: 1.2rem; max-height: 16rem; overflow: auto; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .5rem 0 0; font-size: .9rem; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: 14px; border-radius: 4px; overflow: hidden; background: var(--line); margin: .2rem 0; }
.bar span { display: block; height: 100%; }
.grid { display: inline-grid; font: clamp(9px, 2.8vw, 14px)/1 ui-monospace, monospace; gap: 1px; background: var(--line); padding: 1px; border-radius: 4px; overflow: hidden; }
.grid span { width: 1.5em; height: 1.5em; display: grid; place-items: center; background: var(--panel); }
.grid .dim { filter: opacity(.55); }
.card + .card, .episode > div > * + * { margin-top: .7rem; } .charts .card + .card, .members .card + .card { margin-top: 0; }
.c-red { color: var(--d-red); } .c-green { color: var(--d-green); } .c-blue { color: var(--d-blue); } .c-purple { color: var(--d-purple); } .c-yellow { color: var(--d-yellow); } .c-grey { color: var(--d-grey); }
.grid span:is(.c-red, .c-green, .c-blue, .c-purple, .c-yellow) { background: color-mix(in srgb, currentColor 26%, var(--panel)); font-weight: 700; }
.grid .c-white { background: var(--ink); color: var(--panel); font-weight: 700; }
.grid .full { background: currentColor; }
.members { display: grid; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); gap: .5rem; align-items: start; margin-top: .7rem; }
.members .card { padding: .5rem; }
.members ol { margin: 0; padding-left: 1.35rem; font-size: .8rem; line-height: 1.35; }
.members li a { color: inherit; }
.members li { padding: .12rem .2rem; border-radius: 3px; overflow-wrap: anywhere; }
@media (max-width: 1000px) { .members { grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); } }
.uplot, .u-wrap { max-width: 100%; }
.u-legend { font-size: .8rem; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (max-width: 800px) { .episode { grid-template-columns: minmax(0, 1fr); } main { padding: .6rem; } th, td { padding: .25rem .4rem; } .keys { display: none; } #search { flex: 1 1 100%; }
  .interval { display: none; } td.found { min-width: 10.5rem; } .row { gap: .4rem .5rem; } .charts { gap: .6rem; } }
@media (prefers-reduced-motion: no-preference) { .turns button { transition: background-color .1s; } }
`;
