//! A headless Chromium, driven by `WebDriver`: a protocol of a few JSON requests, which the client of the server's tests can send too.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::client::request;

/// Set where the browser must be there; otherwise the tests are skipped without one.
const REQUIRED: &str = "HOPEDGN_TEST_BROWSER";

/// What `WebDriver` calls the reference of an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long to wait for something to be drawn, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser with one window; ended when it is dropped.
pub(super) struct Browser {
    driver: Child,
    address: String,
    session: String,
}

/// A program of this name on the search path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

impl Browser {
    /// A new browser; none, with a message, where there is none and none is required.
    #[expect(clippy::print_stderr, reason = "says what is skipped")]
    pub(super) fn start() -> Option<Self> {
        let found = find("chromedriver").zip(find("chromium").or_else(|| find("google-chrome")));
        let Some((driver, browser)) = found else {
            assert!(
                std::env::var_os(REQUIRED).is_none(),
                "{REQUIRED} is set, but there is no chromium and chromedriver"
            );
            eprintln!("skipped: no chromium and chromedriver here");
            return None;
        };
        let mut driver = Command::new(driver)
            .args(["--port=0", "--log-level=SEVERE"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let rest = line.split_once("on port ")?.1.to_owned();
            rest.trim_end_matches('.').parse::<u16>().ok().filter(|&port| port > 0)
        });
        let address = format!("127.0.0.1:{}", port.expect("it names its port"));
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--window-size=1280,900",
            "--force-color-profile=srgb",
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": browser, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let (status, answer) = request(&address, "POST", "/session", &[], &capabilities.to_string());
        assert_eq!(status, 200, "{answer}");
        let session = answer["value"]["sessionId"].as_str().expect("a session").to_owned();
        Some(Self { driver, address, session })
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let (status, mut answer) = request(&self.address, method, &path, &[], &body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer["value"].take()
    }

    pub(super) fn open(&self, address: &str) {
        self.command("POST", "/url", &json!({ "url": address }));
    }

    /// What a script returns; `arguments[0]` is `argument`.
    pub(super) fn run(&self, script: &str, argument: &Value) -> Value {
        self.command("POST", "/execute/sync", &json!({ "script": script, "args": [argument] }))
    }

    /// The value of an expression.
    pub(super) fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression};"), &Value::Null)
    }

    /// Waits until an expression is true, and returns how long it took.
    pub(super) fn until(&self, expression: &str) -> Duration {
        let start = Instant::now();
        while self.value(&format!("Boolean({expression})")) != true {
            if start.elapsed() > PATIENCE {
                let page = self.value("location.href + '\\n' + document.body.innerText.slice(0, 3000)");
                panic!("never: {expression}\n{}\n{:?}", page.as_str().unwrap_or_default(), self.messages());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        start.elapsed()
    }

    fn element(&self, css: &str) -> String {
        self.until(&format!("document.querySelector({})", json!(css)));
        let found = self.command("POST", "/element", &json!({ "using": "css selector", "value": css }));
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    pub(super) fn click(&self, css: &str) {
        let element = self.element(css);
        self.command("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Types into an element; private characters of `WebDriver` are keys.
    pub(super) fn type_into(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.command("POST", &format!("/element/{element}/value"), &json!({ "text": text }));
    }

    pub(super) fn resize(&self, width: u32, height: u32) {
        // The width of a window is that of its page in headless mode, but not below 500: emulated as a phone is.
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        let body = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.command("POST", "/goog/cdp/execute", &body);
    }

    /// Errors and warnings of the console since the last call.
    pub(super) fn messages(&self) -> Vec<String> {
        let log = self.command("POST", "/se/log", &json!({"type": "browser"}));
        log.as_array().expect("a log").iter().map(|entry| format!("{} {}", entry["level"], entry["message"])).collect()
    }

    /// Addresses that were asked for since the last call.
    pub(super) fn requests(&self) -> Vec<String> {
        let log = self.command("POST", "/se/log", &json!({"type": "performance"}));
        let address = |entry: &Value| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let is_request = message["message"]["method"] == "Network.requestWillBeSent";
            is_request.then(|| message["message"]["params"]["request"]["url"].as_str().map(str::to_owned))?
        };
        log.as_array().expect("a log").iter().filter_map(address).collect()
    }

    /// Writes a picture of the window where `HOPEDGN_SCREENSHOTS` names a folder.
    pub(super) fn picture(&self, name: &str) {
        use std::io::Write as _;
        let Some(folder) = std::env::var_os("HOPEDGN_SCREENSHOTS") else { return };
        let picture = self.command("GET", "/screenshot", &Value::Null);
        let path = PathBuf::from(folder).join(format!("{name}.png"));
        let mut decode = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(path).expect("a file"))
            .spawn()
            .expect("base64 is there");
        let mut input = decode.stdin.take().expect("a pipe");
        input.write_all(picture.as_str().expect("a picture").as_bytes()).expect("it is taken");
        drop(input);
        decode.wait().expect("it ends");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        let _ = std::panic::catch_unwind(|| request(&self.address, "DELETE", &path, &[], ""));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
