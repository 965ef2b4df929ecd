//! What the daemon needs beside the workspace: certificates, and a place for its lines.

use std::path::Path;

use super::{AFTER_SETTINGS, Findings, Ground};
use crate::gateway::Sink;
use crate::http::{TlsFault, load_tls, tls_validity};
use crate::os::files;
use crate::settings::Effective;

pub(super) fn certificates(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let Ok(effective) = Effective::load(ground.root(), Vec::new()) else {
        return findings.skip(AFTER_SETTINGS);
    };
    let tls = effective.settings.tls;
    if tls.certificate.is_none() {
        return "none is set, so there is no TLS".to_owned();
    }
    let own = match load_tls(&tls, ground.root()) {
        Ok(loaded) => loaded.own.clone(),
        Err(faults) => {
            for TlsFault { why, fix } in faults {
                findings.fail(why, fix);
            }
            return String::new();
        }
    };
    let Some(own) = own else { return "can be used; until when it counts cannot be read".to_owned() };
    if let Some(TlsFault { why, fix }) = tls_validity(&own, ground.now) {
        let counts = own.not_before <= ground.now && ground.now < own.not_after;
        if counts { findings.warn(why, fix) } else { findings.fail(why, fix) }
    }
    format!("can be used until {}", own.not_after)
}

pub(super) fn sink(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let Ok(effective) = Effective::load(ground.root(), Vec::new()) else {
        return findings.skip(AFTER_SETTINGS);
    };
    let Some(path) = effective.settings.sink.path else {
        return "no lines are written for log shippers".to_owned();
    };
    let path = ground.root().join(path);
    if let Err(error) = Sink::check_place(&path, ground.root()) {
        findings.fail(error.to_string(), "the daemon does not start with it: set another path");
        return String::new();
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    let shown = path.display();
    if !parent.is_dir() {
        findings.fail(
            format!("[sink] path: {shown} is in a directory that does not exist"),
            format!("mkdir -p {}, for the daemon's user", parent.display()),
        );
    } else if path.exists() && !path.is_file() {
        findings
            .fail(format!("[sink] path: {shown} is no file"), "set the path of a file; the daemon makes it");
    } else if !files::may_write(parent) || path.exists() && !files::may_write(&path) {
        findings.fail(
            format!("[sink] path: {shown} cannot be written here"),
            "let the daemon's user write the file and its directory: full files are renamed there",
        );
    }
    format!("{shown} can be written")
}
