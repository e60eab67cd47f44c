//! The style sheet of pages, and the theme that charts share.

/// Variables of the light theme.
pub const LIGHT: &str = "--page: #ffffff; --card: #f6f7f9; --rule: #dde1e7; --grid: #e6e9ee; --ink: #1b2130; --quiet: #596273; \
                         --band: #1f5fd014; --all: #1f5fd0; --new: #bf5700; --third: #1a7f5a; --fourth: #8a3ffc; --fifth: #b0125b; --sixth: #5b6b7f;";

/// Variables of the dark theme.
pub const DARK: &str = "--page: #12151b; --card: #1b1f28; --rule: #323947; --grid: #2a303c; --ink: #e7eaf0; --quiet: #a1aabb; \
                        --band: #7fb0ff1f; --all: #7fb0ff; --new: #ffab5e; --third: #5fd3a4; --fourth: #c6a1ff; --fifth: #ff8ab8; --sixth: #9fb0c6;";

/// Light unless the reader's system is dark, and always light on paper.
pub(super) fn style() -> String {
    format!(
        "\n:root {{ color-scheme: light dark; {LIGHT} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}{RULES}"
    )
}

const RULES: &str = r#"
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
h1 { margin: 0 0 1.25rem; font-size: 1.6rem; line-height: 1.25; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { margin: 2.75rem 0 0.75rem; padding-top: 0.9rem; border-top: 1px solid var(--rule); font-size: 1.15rem; }
h3 { margin: 0 0 0.4rem; font-size: 1rem; }
.wide + h3 { margin-top: 1.75rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
p { margin: 0 0 0.75rem; }
.quiet, .tile small, dt, figcaption, caption { color: var(--quiet); }
.note { padding: 0.6rem 0.9rem; border-left: 3px solid var(--new); background: var(--card); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.75rem; margin: 0 0 1.25rem; }
.tile { padding: 0.8rem 1rem; border: 1px solid var(--rule); border-radius: 0.6rem; background: var(--card); }
.tile span, .tile small { display: block; font-size: 0.85rem; line-height: 1.4; }
.tile b { display: block; margin: 0.1rem 0; font-size: 2rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.tile i { font-size: 1.1rem; font-weight: 400; font-style: normal; color: var(--quiet); }
.wide { display: grid; align-items: start; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1.5rem 2rem; }
.wide > * { min-width: 0; }
.wide > p { font-size: 0.9rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr)); gap: 0.6rem 1.5rem;
  margin: 0 0 1.25rem; }
dt { font-size: 0.85rem; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
dd small { display: block; font-size: 0.85rem; color: var(--quiet); }
figure { margin: 0; }
figcaption { display: flex; flex-wrap: wrap; gap: 0 1rem; margin-bottom: 0.3rem; font-size: 0.9rem; }
figcaption b { flex-basis: 100%; color: var(--ink); font-weight: 600; }
figure > svg.chart { max-width: 30rem; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.95rem; font-variant-numeric: tabular-nums; }
caption { padding: 0 0 0.3rem; text-align: left; font-size: 0.9rem; }
caption b { color: var(--ink); font-weight: 600; }
th, td { padding: 0.3rem 0.5rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { font-weight: 400; color: var(--quiet); }
td { color: var(--ink); }
th:first-child, td:first-child { padding-left: 0; text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 6rem; }
.epochs th:first-child { min-width: 3.5rem; padding-left: 0.35rem; white-space: nowrap; }
.scroll tr > :first-child { position: sticky; left: 0; background: var(--page); }
thead tr:first-child th { border-bottom: 0; padding-bottom: 0; }
tr.model th { color: var(--ink); font-weight: 600; }
tr.best > *, .scroll tr.best > :first-child { background: linear-gradient(var(--band), var(--band)), var(--page); }
details { margin-top: 1.5rem; }
summary { cursor: pointer; font-weight: 600; }
details > :nth-child(2) { margin-top: 0.75rem; }
pre { margin: 0; padding: 1rem; overflow-x: auto; border-radius: 0.6rem; background: var(--card);
  font: 0.85rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
@media (max-width: 30rem) { body { padding-top: 1.25rem; } th, td { padding: 0.3rem 0.35rem; }
  .tile { padding: 0.6rem 0.75rem; } .tile b { font-size: 1.6rem; }
  .tile span, .tile small { font-size: 0.8rem; }
  dl { grid-template-columns: 1fr 1fr; } .scroll tr > :first-child { max-width: 8.5rem; } }
@media print { body { padding: 0; max-width: none; font-size: 11pt; } figure, .tile, tr, dl > div { break-inside: avoid; }
  h2, h3 { break-after: avoid; } .scroll { overflow: visible; } pre { white-space: pre-wrap; }
  details::details-content { content-visibility: visible; display: block; height: auto; } }
"#;
