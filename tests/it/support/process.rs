//! The program as its own process, to be asked over HTTP and killed.

use super::gateways::{client, complete};
use crate::support::prelude::*;
use std::ffi::OsStr;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub const TOKEN: &str = "a-token-for-tests";

pub struct Process {
    /// The process; it dies with this.
    pub child: Child,
    pub address: String,
    client: reqwest::Client,
}

impl Asked for Process {
    fn client(&self) -> &reqwest::Client {
        &self.client
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

/// The status of a command of the program, and what it says on standard output and then on standard error.
pub async fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.current_dir(folder).args(arguments);
    command.env("TIDEGATE_ADMIN_TOKEN", TOKEN).env_remove("TIDEGATE_URL");
    let output = command.output().await.unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said)
}

impl Process {
    /// Starts `tidegate serve` with the configuration `t.toml` of a folder and these variables; its logs are in `log`
    /// there. `TIDEGATE_BIN` names another build of the program.
    pub async fn start(folder: &Path, environment: &[(&str, &OsStr)]) -> Self {
        let named = std::env::var_os("TIDEGATE_BIN");
        let logs = std::fs::File::create(folder.join("log")).unwrap();
        let mut child =
            Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_tidegate").into()))
                .args(["serve", "-c", "t.toml"])
                .env("TIDEGATE_ADMIN_TOKEN", TOKEN)
                .envs(environment.iter().copied())
                .current_dir(folder)
                .stdout(Stdio::piped())
                .stderr(logs)
                .kill_on_drop(true)
                .spawn()
                .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line());
        let line = line.await.expect("it answers within a minute").unwrap().expect("it says where");
        let address = line.strip_prefix("listening on ").expect("the contract's line").to_owned();
        Self { child, address, client: client() }
    }

    /// Starts it with this configuration, in the file `t.toml` of a folder.
    pub async fn configured(folder: &Path, text: &str) -> Self {
        std::fs::write(folder.join("t.toml"), complete(text)).unwrap();
        Self::start(folder, &[]).await
    }

    /// Asks for something as a system does: a signal by its name.
    pub async fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().await.unwrap();
        assert!(sent.success());
    }

    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Ends it as a system does.
    pub async fn stop(self) {
        self.signal("TERM").await;
        self.stop_when_asked().await;
    }

    /// Waits for the end that it was asked for.
    pub async fn stop_when_asked(mut self) {
        assert!(self.child.wait().await.unwrap().success());
    }

    /// Polls a feed now; what came of it.
    pub async fn poll(&self, feed: &str) -> Value {
        let report = self.call("POST", &format!("/feeds/{feed}/poll"), Value::Null).await;
        assert!(report["error"].is_null(), "{report}");
        report
    }
}
