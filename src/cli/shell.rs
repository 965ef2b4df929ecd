//! Words of commands that people paste into a shell.

use std::path::Path;

/// A path as one word of a POSIX shell, whatever is in it.
pub(super) fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    // Between these quotes everything is itself but the quote.
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_path_that_was_meant() {
        for path in ["/srv/gateway", "/srv/my gateway", "it's $HOME `id` \"x\" \\", "ünïcode", "*", "a;b"] {
            let line = format!("printf %s {}", word(Path::new(path)));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), path, "{line}");
        }
        assert_eq!(word(Path::new("/srv/gateway-1.example")), "/srv/gateway-1.example");
    }
}
