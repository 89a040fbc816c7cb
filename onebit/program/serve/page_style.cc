#include "onebit/program/serve/page.h"

namespace onebit::serve {

const char* const kPageStyle = R"css(
:root { --page: #fff; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0; --field: #f6f8fa;
  --accent: #0969da; --bar: #54aeff; --mark: #fff1c2; --wrong: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --field: #161b22;
    --accent: #4493f8; --bar: #1f6feb; --mark: #5a4300; --wrong: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 46rem; padding: 0 1rem 2rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 0 1.5rem; align-items: baseline;
  border-bottom: 1px solid var(--line); margin-bottom: 1rem; }
header p { margin: 0.5rem 0; }
h1 { font-size: 1.3rem; margin: 0.8rem 0; }
h2 { font-size: 1rem; margin: 1.5rem 0 0.4rem; }
label { font-weight: 600; }
.field { margin: 0 0 0.8rem; }
.field label { display: block; }
textarea, select, input, button { font: inherit; color: inherit; background: var(--field);
  border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem 0.6rem; max-width: 100%; }
textarea { width: 100%; resize: vertical; }
button { cursor: pointer; }
button[type=submit] { background: var(--accent); border-color: var(--accent); color: var(--page);
  font-weight: 600; }
button:disabled { opacity: 0.6; cursor: progress; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.faint { color: var(--faint); font-size: 0.875rem; }
#error { color: var(--wrong); white-space: pre-wrap; overflow-wrap: anywhere; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 2; }
.big { font-size: 2rem; margin: 0.2rem 0; }
.bars { display: grid; grid-template-columns: minmax(4rem, auto) minmax(3rem, 1fr) auto; gap: 0.3rem 0.7rem;
  align-items: center; margin: 0.4rem 0; }
.bars .name { overflow-wrap: anywhere; max-width: 16rem; }
.track { height: 0.8rem; background: var(--field); border: 1px solid var(--line);
  border-radius: 4px; overflow: hidden; min-width: 3rem; }
.track svg { display: block; width: 100%; height: 100%; }
.track rect { fill: var(--bar); }
.number { font-variant-numeric: tabular-nums; text-align: right; }
mark { background: var(--mark); color: inherit; border-radius: 4px; padding: 0.1rem 0.2rem; }
mark small { font-weight: 600; margin-left: 0.3rem; }
#tokens { display: flex; flex-direction: column; gap: 0.4rem; }
#tokens div { display: flex; flex-wrap: wrap; gap: 0.25rem; min-width: 0; }
#tokens span { border: 1px solid var(--line); border-radius: 4px; padding: 0 0.3rem;
  font: 0.875rem/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  max-width: 100%; }
#tokens .special { color: var(--faint); border-style: dashed; }
#times { display: grid; grid-template-columns: auto 1fr; gap: 0 1rem; margin: 0; }
#times dd { margin: 0; font-variant-numeric: tabular-nums; }
pre { background: var(--field); border: 1px solid var(--line); border-radius: 6px;
  padding: 0.6rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 0.875rem/1.5 ui-monospace, monospace; }
footer { margin-top: 2rem; }
[hidden] { display: none !important; }
)css";

}  // namespace onebit::serve
