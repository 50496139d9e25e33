//! The commands at the top of the project's README, as a shell runs them, and what they print.

use std::process::Stdio;

use tokio::process::Command;
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::store;

#[path = "../../examples/api/app.rs"]
mod app;

/// The README's commands, each with the lines it says they print.
fn commands(readme: &str) -> Vec<(&str, Vec<String>)> {
    let mut commands: Vec<(&str, Vec<String>)> = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => commands.push((command, Vec::new())),
                None => commands.last_mut().unwrap().1.push(comparable(line)),
            }
        }
    }
    commands
}

/// The line without what is another one each day.
fn comparable(line: &str) -> String {
    let name = line.split_once(": ").map(|(name, _)| name);
    match name {
        Some(name @ ("date" | "x-ratelimit-reset")) => name.to_owned(),
        _ => line.trim_end().to_owned(),
    }
}

#[tokio::test]
async fn the_readmes_commands_print_what_it_says() {
    let readme = include_str!("../../../../README.md");
    let server = Server::start(app::app(&store(&ManualClock::default())).unwrap()).await;
    let commands = commands(readme);
    assert_eq!(commands.len(), 5);
    for (command, shown) in commands {
        let command = command.replace("http://localhost:3000", &server.url(""));
        let output = Command::new("sh")
            .args(["-c", &command])
            .env("no_proxy", "*")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let printed: Vec<_> = printed.lines().map(comparable).collect();
        assert_eq!(printed, shown, "{command}");
    }
}
