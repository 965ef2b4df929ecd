//! URLs that an operator writes: what is taken, and what of them may be shown.
//!
//! No fault quotes the URL it is about: it may have a password in it.

/// Stands where a secret was. Refused when it is read: `--print-config` must not become a password.
pub(super) const MASK: &str = "[secret]";

/// Parameters of a database URL that are no secret; whatever else there is may be one.
const SHOWN_PARAMETERS: [&str; 5] =
    ["application_name", "channel_binding", "connect_timeout", "sslmode", "target_session_attrs"];

/// Is this a URL of a web service, without credentials or parameters?
pub(super) fn check_web(url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    if !matches!(scheme, "http" | "https") {
        return Err("begins with http:// or https://".to_owned());
    }
    check_characters(url)?;
    if rest.contains(['?', '#']) {
        return Err("has no part after `?` or `#`".to_owned());
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if rest.contains('@') {
        return Err("has no user name or password in it".to_owned());
    }
    check_host(authority)
}

/// Is this a database URL in which we know where the password ends?
pub(super) fn check_postgres(url: &str) -> Result<(), String> {
    let Some((_, rest)) = url.split_once("://") else {
        return Err("names no host; write postgres://user@host/database".to_owned());
    };
    check_characters(url)?;
    if url.contains(MASK) {
        return Err(format!("has {MASK} where a secret was; put the secret back"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if rest.contains('#') || rest.matches('@').count() > authority.matches('@').count().min(1) {
        return Err("has `/`, `?`, `#` or `@` in a user name or password; write them as %2F, %3F, %23, %40"
            .to_owned());
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    check_host(host)
}

fn check_characters(url: &str) -> Result<(), String> {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(()) } else { Err("has a space or a character that is not ASCII in it".to_owned()) }
}

fn check_host(host: &str) -> Result<(), String> {
    // An IPv6 address is full of colons; the port comes after its bracket.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    if name.is_empty() {
        return Err("names no host".to_owned());
    }
    match port {
        Some(port) if port.parse::<u16>().is_err() => {
            Err("has a port that is no number up to 65535".to_owned())
        }
        _ => Ok(()),
    }
}

/// Is there a password in a database URL? What is masked beside it may be one, and mostly is none.
pub(super) fn has_password(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return true };
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let of_user = address.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    let is_secret =
        |parameter: &str| parameter.split('=').next().is_some_and(|name| name.contains("password"));
    of_user || parameters.split('&').any(is_secret)
}

/// A database URL with its password, and every parameter that may be one, masked.
pub(super) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return MASK.to_owned() };
    let (address, parameters) = match rest.split_once('?') {
        Some((address, parameters)) => (address, Some(parameters)),
        None => (rest, None),
    };
    let address = match address.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
            None => format!("{user}@{host}"),
        },
        None => address.to_owned(),
    };
    let Some(parameters) = parameters else { return format!("{scheme}://{address}") };
    let parameters: Vec<String> = parameters
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if !SHOWN_PARAMETERS.contains(&name) => format!("{name}={MASK}"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{scheme}://{address}?{}", parameters.join("&"))
}
