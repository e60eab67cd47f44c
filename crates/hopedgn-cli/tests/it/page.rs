//! The page of `hopedgn serve` in a real browser.

mod browser;

use serde_json::{Value, json};

use crate::serve::{STATS, Served, events, home, rows};
use crate::tries;
use browser::Browser;

/// The key Enter, as `WebDriver` names it.
const ENTER: &str = "\u{e007}";
const ARROW_DOWN: &str = "\u{e015}";

/// A name that would do harm if it were taken for HTML.
const HOSTILE: &str = "<script>window.harm = 1</script><img src=x onerror='window.harm = 2'>\"'&";

/// The page of `server`, opened at a view and drawn.
fn open(browser: &Browser, server: &Served, view: &str) {
    browser.open("about:blank");
    browser.open(&format!("http://{}/{view}", server.address()));
    browser.until("document.body.dataset.ready === 'true'");
}

/// Goes to another view of the open page.
fn go(browser: &Browser, view: &str) {
    browser.run("location.hash = arguments[0];", &json!(view));
}

/// No error in the console, and no request to anywhere but the server.
fn check_quiet(browser: &Browser, server: &Served) {
    let errors: Vec<String> = browser.messages().into_iter().filter(|line| !line.contains("\"INFO\"")).collect();
    assert_eq!(errors, Vec::<String>::new());
    let own = format!("http://{}/", server.address());
    let allowed =
        |address: &String| address.starts_with(&own) || address.starts_with("data:") || address == "about:blank";
    let others: Vec<String> = browser.requests().into_iter().filter(|address| !allowed(address)).collect();
    assert_eq!(others, Vec::<String>::new());
}

#[test]
fn a_person_finds_a_node_a_pair_and_its_reasons() {
    let Some(browser) = Browser::start() else { return };
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    // Again and again: a page that was left holds none of the few connections that a browser opens to one server.
    for _ in 0..8 {
        open(&browser, &server, "");
    }
    browser.picture("live-light");

    // An event that comes in by another way is seen.
    server.post("/v1/events", &json!([{"src": "ann", "dst": 7, "time": 2000}]));
    browser.until("document.querySelector('#newest tr[data-event=\"600\"]')?.innerText.includes('ann')");
    browser.until("document.querySelector('#live-events').innerText.replace(/\\D/g, '') === '601'");

    // Search by keyboard.
    browser.type_into("#search", "an");
    browser.until("document.querySelector('#search-results [role=option]')?.innerText.includes('ann')");
    browser.type_into("#search", &[ARROW_DOWN, ENTER].concat());
    browser.until("document.querySelector('#node-title')?.innerText.includes('ann')");
    browser.until("document.querySelectorAll('#node-partners [data-probability]').length > 3");
    browser.picture("node-light");

    // A pair: what the page shows is what the interface says.
    go(&browser, "#/pair/7/9");
    browser.until("document.querySelectorAll('#pair-effects [data-event]').length > 3");
    browser.picture("pair-light");
    let score = |body: Value| server.post("/v1/score", &body)["scores"][0].clone();
    let pair = json!([{"src": 7, "dst": 9}]);
    let expected = score(json!({"pairs": pair, "explain": true}));
    let shown = browser.value("document.querySelector('#pair-probability').dataset.probability");
    let number = |text: &Value| text.as_str().expect("text").parse::<f64>().expect("a number");
    assert_eq!(number(&shown), expected["probability"].as_f64().expect("a number"));
    let shown = browser.value("[...document.querySelectorAll('#pair-effects [data-event]')].map(row => [Number(row.dataset.event), Number(row.dataset.change)])");
    let effects = expected["explanation"]["effects"].as_array().expect("effects");
    let shown = shown.as_array().expect("rows");
    assert!(shown.len() > 3 && shown.len() <= effects.len(), "{shown:?}");
    for (shown, effect) in shown.iter().zip(effects) {
        assert_eq!(*shown, json!([effect["event"], effect["change"]]));
    }

    // What if its first event had not happened.
    browser.click("#pair-effects [data-event]");
    browser.until("document.querySelector('#what-if')?.dataset.probability");
    let shown = browser.value("document.querySelector('#what-if').dataset.probability");
    let expected = score(json!({"pairs": pair, "without": [effects[0]["event"]]}));
    assert_eq!(number(&shown), expected["probability"].as_f64().expect("a number"));
    check_quiet(&browser, &server);
}

#[test]
fn the_graph_plays_the_stream_and_the_runs_are_compared() {
    let Some(browser) = Browser::start() else { return };
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    open(&browser, &server, "#/graph/7/9");
    browser.until("Number(document.querySelector('#graph-summary')?.dataset.edges) > 10");
    browser.picture("graph-light");
    let edges =
        || browser.value("Number(document.querySelector('#graph-summary').dataset.edges)").as_u64().expect("a number");
    let at_the_end = edges();
    let slide = "const slider = document.querySelector('#graph-slider'); slider.value = arguments[0] === 'first' ? slider.min : slider.max;
                 slider.dispatchEvent(new Event('input', {bubbles: true})); slider.dispatchEvent(new Event('change', {bubbles: true}));";
    browser.run(slide, &json!("first"));
    browser.until(&format!("Number(document.querySelector('#graph-summary').dataset.edges) < {at_the_end}"));
    browser.run(slide, &json!("last"));
    browser.until(&format!("Number(document.querySelector('#graph-summary').dataset.edges) === {at_the_end}"));

    // Frames that come slowly take detail away, quick ones give it back; never all of it.
    let levels =
        "const [{pace}, {LEVELS}] = await Promise.all([import('/assets/pace.js'), import('/assets/graph-scene.js')]);
                  const pacer = pace(LEVELS); let now = 0; const seen = [LEVELS];
                  for (const [ms, frames] of [[16, 200], [70, 200], [16, 2000]]) {
                      for (let i = 0; i < frames; i++) seen.push(pacer.frame(now += ms));
                      seen.push('then');
                  }
                  return seen.filter((level, i) => level !== seen[i - 1]);";
    let levels = browser.run(&format!("return (async () => {{ {levels} }})();"), &Value::Null);
    assert_eq!(levels, json!([4, "then", 4, 3, 2, 1, "then", 1, 2, 3, 4, "then"]));

    go(&browser, "#/runs");
    browser.until("document.querySelector('#runs-table tr[data-run=\"mine\"]')");
    browser.picture("runs-light");

    // An event that is tried changes the score of its pair.
    go(&browser, "#/try");
    browser.type_into("#event-src", "3");
    browser.type_into("#event-dst", "39");
    browser.click("#event-send");
    browser.until("document.querySelector('#event-after')?.dataset.probability");
    let [before, after] = ["before", "after"].map(|which| {
        browser.value(&format!("Number(document.querySelector('#event-{which}').dataset.probability)")).as_f64()
    });
    assert!(after > before, "{before:?} {after:?}");
    assert_eq!(server.get("/v1/status")["events"], 601);
    browser.picture("try-light");
    check_quiet(&browser, &server);
}

/// Plays a node that met 1,999 others, in each level of detail. `HOPEDGN_TRIES=12` and `--nocapture` measure the time of frames.
#[test]
#[expect(clippy::print_stderr, reason = "a measurement")]
fn a_graph_of_2000_nodes_plays_in_every_level_of_detail() {
    let Some(browser) = Browser::start() else { return };
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    let met = (1..2000_u64).map(|i| (0, i));
    let among = (0..8000_u64).map(|i| (1 + i * 7919 % 1999, 1 + (i * 104_729 + i / 3) % 1999));
    let all: Vec<(u64, u64)> = met.chain(among).collect();
    for (first, part) in (0..).step_by(1000).zip(all.chunks(1000)) {
        let event = |(at, (a, b)): (u64, &(u64, u64))| json!({"src": format!("n{a}"), "dst": format!("n{b}"), "time": 2000 + first + at});
        server.post("/v1/events", &json!((0..).zip(part).map(event).collect::<Vec<Value>>()));
    }
    open(&browser, &server, "");
    let set_up = "const {graphScene} = await import('/assets/graph-scene.js');
        const data = await (await fetch('/v1/graph?node=n0&limit=2000')).json();
        const place = document.createElement('div');
        Object.assign(place.style, {position: 'fixed', inset: '0', width: '1240px', height: '500px'});
        document.body.append(place);
        window.played = {data, scene: graphScene(place, data, {select() {}, open() {}})};
        return [data.nodes.length, data.edges.length];";
    let run = |script: &str, argument: &Value| {
        browser.run(&format!("return (async (argument) => {{ {script} }})(arguments[0]);"), argument)
    };
    let sizes = run(set_up, &Value::Null);
    assert!(sizes[0] == 2000 && sizes[1].as_u64() > Some(6000), "{sizes}");
    // A script may take half a minute, and a frame a second on a machine that does other things: one script for each level.
    let play = "const {level, from, to, frames} = argument;
        const {scene, data} = window.played;
        const frame = () => new Promise(requestAnimationFrame);
        await frame();
        const start = performance.now();
        let nodes;
        for (let i = 1; i <= frames; i++) {
            nodes = scene.setTime(data.first_time + (data.last_time - data.first_time) * (from + (to - from) * i / frames), level).nodes;
            await frame();
        }
        return [nodes, (performance.now() - start) / frames];";
    let frames = tries::number(2).min(60);
    let mut before = 0;
    for (at, level) in (0_u32..).zip([4, 3, 2, 1, 2, 3, 4]) {
        let part = |at: u32| f64::from(at) / 7.0;
        let argument = json!({"level": level, "from": part(at), "to": part(at + 1), "frames": frames});
        let found = run(play, &argument);
        eprintln!("level {level}: {:.0} ms a frame", found[1].as_f64().unwrap_or_default());
        let nodes = found[0].as_u64().unwrap();
        assert!(nodes >= before, "nodes do not vanish: {nodes} after {before}");
        before = nodes;
    }
    assert!(before > 1990, "{before}");
    run("window.played.scene.dispose();", &Value::Null);
    check_quiet(&browser, &server);
}

#[test]
fn hostile_names_do_nothing_and_every_view_fits_a_phone_in_both_themes() {
    let Some(browser) = Browser::start() else { return };
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    let long = "n".repeat(900);
    let names = [HOSTILE, &long, "..", "a/b?c#d%2e", " ", "\u{202e}rtl\u{200f}", "🦀 node"];
    let hostile: Vec<Value> = names.iter().map(|name| json!({"src": name, "dst": 7, "time": 2000})).collect();
    server.post("/v1/events", &json!(hostile));
    server.post("/v1/events", &events(&rows(2000..2010)));
    open(&browser, &server, "");
    browser.until("document.querySelector('#newest')?.innerText.includes('<script>')");
    for theme in ["light", "dark"] {
        if browser.value("document.documentElement.dataset.theme") != theme {
            browser.click("#theme");
        }
        browser.until(&format!("document.documentElement.dataset.theme === '{theme}'"));
        for width in [1280, 390] {
            browser.resize(width, 844);
            for (at, name) in names.iter().enumerate() {
                let encoded = browser.run("return encodeURIComponent(arguments[0]);", &json!(name));
                let encoded = encoded.as_str().expect("text");
                for view in [format!("#/node/{encoded}"), format!("#/pair/{encoded}/7"), format!("#/graph/{encoded}")] {
                    // One name at both widths in both themes, the others once.
                    if at > 0 && (width, theme) != (390, "light") {
                        continue;
                    }
                    go(&browser, &view);
                    let kind = view.split('/').nth(1).expect("a view").to_owned();
                    browser.until(&format!("document.body.dataset.view === '{kind}'"));
                    let drawn = match &*kind {
                        "node" => {
                            "document.querySelector('#node-title')?.innerText !== '' && document.querySelector('#node-partners [data-probability]')"
                        }
                        "pair" => "document.querySelector('#pair-probability')?.dataset.probability",
                        _ => "Number(document.querySelector('#graph-summary')?.dataset.nodes) > 1",
                    };
                    browser.until(drawn);
                    check_fits(&browser, &view);
                    if at == 0 {
                        browser.picture(&format!("hostile-{kind}-{theme}-{width}"));
                    }
                }
            }
            for view in ["#/live", "#/runs", "#/try"] {
                go(&browser, view);
                browser.until(&format!("'#/' + document.body.dataset.view === '{view}'"));
                check_fits(&browser, view);
                browser.picture(&format!("{}-{theme}-{width}", &view[2..]));
            }
        }
    }
    assert_eq!(browser.value("typeof window.harm"), "undefined");
    check_quiet(&browser, &server);
}

/// The view is no wider than the window.
fn check_fits(browser: &Browser, view: &str) {
    let widths = browser.value("[document.documentElement.scrollWidth, window.innerWidth]");
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "{view}: {widths}");
}

#[test]
fn a_token_is_asked_for_and_kept_in_memory_alone() {
    let Some(browser) = Browser::start() else { return };
    let home = home(&STATS);
    std::fs::write(home.path().join("read"), "a-token-for-reading\n").expect("a file");
    std::fs::write(home.path().join("write"), "a-token-for-writing\n").expect("a file");
    let server = Served::start(home.path(), &["mine", "--read-token-file", "read", "--write-token-file", "write"]);
    browser.open(&format!("http://{}/", server.address()));
    browser.until("document.querySelector('#token-dialog')?.open");
    browser.type_into("#token-field", "a-token-for-reading");
    browser.click("#token-send");
    browser.until("document.body.dataset.ready === 'true'");
    let kept =
        browser.value("document.cookie + JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage})");
    assert!(!kept.as_str().expect("text").contains("token"), "{kept}");
    assert_eq!(browser.value("location.href.includes('token')"), false);
    // Refused requests are errors in the console, which is as it should be.
    browser.messages();
    go(&browser, "#/pair/7/9");
    browser.until("document.querySelector('#pair-probability')?.dataset.probability");
    check_quiet(&browser, &server);
}
