"""How a report looks: one accent colour, no script, nothing fetched; in the dark, on paper and on a narrow screen."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5f6368; --line: #d9d9de; --paper: #ffffff; --wash: #f4f5f7;
  --accent: #0b62a4; --good: #0b62a4; --bad: #a83200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --soft: #a3a7ad; --line: #3a3c40; --paper: #17181a;
  --wash: #222428; --accent: #7ab8ec; --good: #7ab8ec; --bad: #ff9a6b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: .6rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.02rem; margin: 2rem 0 .4rem; }
h1, h3, p, li, summary { overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 46rem; }
.about { font-size: 1.1rem; }
.soft, .about + p, figcaption, .note { color: var(--soft); font-size: .9rem; }
.warning { border-left: 4px solid var(--bad); padding: .35rem .8rem; background: var(--wash); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .9rem; margin: 1rem 0 0; } a { color: var(--accent); }
ul.answer { list-style: none; margin: 1.2rem 0 .8rem; padding: 0; }
ul.answer li { display: grid; grid-template-columns: 11.5rem 1fr 14rem; gap: 0 1rem; align-items: center;
  padding: .65rem .2rem; border-bottom: 1px solid var(--line); }
ul.answer li.ours { background: var(--wash); } ul.answer li.ours p { font-weight: 600; }
ul.answer li p.note { font-weight: 400; }
ul.answer p { margin: 0; }
.verdict { display: inline-block; font-size: .82rem; font-weight: 600; padding: .12rem .55rem; border-radius: .3rem;
  border: 1.5px solid var(--line); color: var(--soft); white-space: nowrap; }
.verdict.better { background: var(--good); border-color: var(--good); color: var(--paper); }
.verdict.worse { border-color: var(--bad); color: var(--bad); }
.verdict.alarm { background: var(--bad); border-color: var(--bad); color: var(--paper); }
svg.glyph { width: 100%; height: 1.6rem; display: block; color: var(--soft); }
svg.glyph.better, svg.glyph.ours { color: var(--good); } svg.glyph.worse { color: var(--bad); }
ul.answer li.scale { border: 0; padding: 0 .2rem; } ul.answer li.scale div { grid-column: 3; text-align: center; }
ul.answer li.scale small { color: var(--soft); font-size: .76rem; }
svg.scale { height: 1.1rem; } svg.scale text { fill: currentColor; font-size: .76rem; }
.scroll { overflow-x: auto; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { text-align: right; padding: .32rem .4rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td:nth-child(2) { white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; } thead th { border-bottom: 1.5px solid var(--soft); }
th:first-child, td:first-child, .left { text-align: left; } tbody th { font-weight: 600; vertical-align: top; }
caption { text-align: left; font-size: .85rem; color: var(--soft); padding: .2rem 0; }
.source { color: var(--soft); font-size: .76rem; margin: -.6rem 0 1rem; max-width: none; overflow-wrap: anywhere; }
p.note + .source, ul + .source { margin-top: 0; }
figcaption { font-size: .76rem; } td.wide { min-width: 16rem; max-width: 30rem; white-space: normal; }
td small { display: block; color: var(--soft); font-size: .78rem; white-space: nowrap; }
tr.ours th { color: var(--accent); } th small { display: block; font-weight: 400; color: var(--soft);
  font-size: .78rem; max-width: 8rem; } td.unknown { color: var(--soft); font-style: italic; }
td.up { box-shadow: inset 3px 0 0 var(--good); } td.down { box-shadow: inset 3px 0 0 var(--bad); }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; display: block; background: #fff;
  border-radius: .3rem; }
details { margin: .5rem 0; } summary { cursor: pointer; font-size: .92rem; }
pre { background: var(--wash); padding: .7rem .9rem; overflow-x: auto; font-size: .82rem; border-radius: .3rem; }
dl { display: grid; grid-template-columns: 11rem 1fr; gap: .2rem 1rem; font-size: .9rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; } .error { overflow-wrap: anywhere; max-width: 34rem; }
@media (max-width: 700px) { body { padding: 1.2rem .8rem 3rem; } ul.answer li {
  grid-template-columns: minmax(0, 1fr); gap: .3rem; } ul.answer li.scale div { grid-column: 1; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  th, td { padding: .3rem .4rem; } }
@media print { html { font-size: 11px; } body { max-width: none; padding: 0; font-size: 9pt; } nav { display: none; }
  .scroll { overflow: visible; } table { font-size: 7pt; } th, td { padding: .25rem .3rem; } p { max-width: none; }
  .scroll, figure, tr, li { break-inside: avoid; } thead { display: table-header-group; }
  h2 { margin-top: 2rem; } h3 + .note { break-after: avoid; } td.wide, .error { min-width: 0; }
  h2, h3 { break-after: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
