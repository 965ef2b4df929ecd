//! Opens an address in a browser, with what the environment names for it, and says what came of it.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::json::printable;
use crate::limits;

/// Why nothing was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotOpened {
    /// There is no screen, and nothing else was named.
    NoDisplay,
    /// None of these opened it.
    Failed(Vec<String>),
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDisplay => f.write_str("there is no display here to open a browser on"),
            Self::Failed(programs) => write!(f, "no browser could be opened ({})", programs.join("; ")),
        }
    }
}

/// Opens it, and says with which program.
pub(super) fn open(url: &str) -> Result<String, NotOpened> {
    let named = std::env::var("BROWSER").unwrap_or_default();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_display = cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    let mut failed = Vec::new();
    for command in commands(&named, has_display, url).ok_or(NotOpened::NoDisplay)? {
        let program = command.first().cloned().unwrap_or_default();
        match start(&command) {
            Ok(()) => return Ok(printable(&program)),
            Err(why) => failed.push(format!("{}: {why}", printable(&program))),
        }
    }
    Err(NotOpened::Failed(failed))
}

/// What to try, in this order: what `BROWSER` names, which is a list, each with `%s` where the address goes or else
/// with the address behind it; without it, what the desktop has, if there is one.
fn commands(named: &str, has_display: bool, url: &str) -> Option<Vec<Vec<String>>> {
    let named: Vec<Vec<String>> = named
        .split(':')
        .map(|one| one.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
        .filter(|words| !words.is_empty())
        .map(|mut words| {
            if words.iter().any(|word| word.contains("%s")) {
                words.iter_mut().for_each(|word| *word = word.replace("%s", url));
            } else {
                words.push(url.to_owned());
            }
            words
        })
        .collect();
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    match (named.is_empty(), has_display) {
        (false, _) => Some(named),
        (true, true) => Some(vec![vec![opener.to_owned(), url.to_owned()]]),
        (true, false) => None,
    }
}

/// Starts a browser. One that is still there after a while is one: it need not end before us.
fn start(command: &[String]) -> Result<(), String> {
    let [program, arguments @ ..] = command else { return Err("nothing to start".to_owned()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What ends this command at the terminal does not end the browser.
        .process_group(0)
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "not found".to_owned(),
            _ => error.to_string(),
        })?;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(limits::BROWSER_START_MS) {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(named: &str, has_display: bool, expected: Option<&[&str]>) {
        let found = commands(named, has_display, "http://x/?a%20b");
        let lines = found.map(|all| all.iter().map(|words| words.join(" ")).collect::<Vec<_>>());
        let expected = expected.map(|all| all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(lines, expected, "{named} {has_display}");
    }

    #[test]
    fn the_environment_says_which_browser() {
        check("firefox", false, Some(&["firefox http://x/?a%20b"]));
        check("w3m:links -g %s", true, Some(&["w3m http://x/?a%20b", "links -g http://x/?a%20b"]));
        check(":: ", false, None);
        check("", false, None);
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        check("", true, Some(&[&format!("{opener} http://x/?a%20b")]));
    }

    #[test]
    fn a_browser_that_fails_or_is_not_there_is_told() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(start(&words("true")), Ok(()));
        assert_eq!(start(&words("false")), Err("exit status: 1".to_owned()));
        assert_eq!(start(&words("no-such-browser-anywhere")), Err("not found".to_owned()));
        let why = NotOpened::Failed(vec!["w3m: exit status: 1".to_owned()]);
        assert_eq!(why.to_string(), "no browser could be opened (w3m: exit status: 1)");
    }
}
