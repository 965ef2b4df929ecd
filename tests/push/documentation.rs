//! The program that `docs/push.md` shows, taken from the page and run. Needs a `python3` (or `$PYTHON`) that has
//! `cryptography`; `scripts/test` installs it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use handoffd::dispatch::jwks;

use super::receiver::{Received, Receiver};
use super::stage::{Scene, Setting, WHOLE, eventually, seed, task};

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn the_program_in_the_page_tells_a_notification_of_ours_from_any_other() {
    let page = include_str!("../../docs/push.md");
    let program = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let receiver = Receiver::willing();
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("check_push.py"), program);
    write(&directory.path().join("jwks.json"), &jwks([seed().public_hex().as_str()]).to_string());
    let other = handoffd::proof::Seed::from_bytes(&[8; 32]).public_hex();
    write(&directory.path().join("other.json"), &jwks([other.as_str()]).to_string());

    let scene = Scene::local(directory.path());
    let (task, url) = (task(1), receiver.url("/hook"));
    scene.set(Setting::default().of(&task, &url));
    scene.play(&task, WHOLE);
    eventually("it is done", || (scene.state(&task, "c1") == "done").then_some(())).await;
    scene.stop().await;
    let received = receiver.received().remove(3);
    let sent_at = std::fs::metadata(directory.path().join("push")).unwrap().modified().unwrap();
    let sent_at = sent_at.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();

    let check = |keys: &str, url: &str, received: &Received, seconds_later: u64| {
        let python = std::env::var("PYTHON").unwrap_or("python3".to_owned());
        let now = (sent_at + seconds_later).to_string();
        let mut child = Command::new(python)
            .current_dir(directory.path())
            .args(["check_push.py", keys, url, received.header("handoffd-signature").unwrap(), &now])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&received.body).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(check("jwks.json", &url, &received, 0), "it holds");
    assert_eq!(check("jwks.json", &url, &received, 400), "expired");
    assert_eq!(check("jwks.json", "https://other.example/", &received, 0), "other_url");
    assert_eq!(check("other.json", &url, &received, 0), "unknown_key");
    let mut changed = received.clone();
    changed.body.push(b' ');
    assert_eq!(check("jwks.json", &url, &changed, 0), "changed_body");
}
