//! What to do about what a server or the way to it says: said behind it, for whoever starts a gateway has only that line.

use tokio_postgres::error::SqlState;

/// By the code of what the server answered.
pub(super) fn for_answer(code: &SqlState) -> Option<&'static str> {
    Some(match *code {
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "its role must own the schema that the tables are made in, or be granted create and usage on it; where others made \
             them, usage on the schema and select, insert, update and delete on its handoffd_ tables"
        }
        SqlState::TOO_MANY_CONNECTIONS => {
            "each replica needs 10 connections: raise max_connections, or the limit of the role or database"
        }
        SqlState::INVALID_CATALOG_NAME => "create the database, in UTF-8, or correct its name in the URL",
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "see the user and the password in the URL, and pg_hba.conf"
        }
        SqlState::CANNOT_CONNECT_NOW => "it is starting or stopping: it can be asked again shortly",
        _ => return None,
    })
}

/// By the words of the driver and of what it rests on, which have no codes.
pub(super) fn for_words(words: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 8] = [
        ("Connection refused", "is PostgreSQL running there, and does it listen on that address and port?"),
        (
            "password missing",
            "the server asks for a password: have the URL say one, postgres://user:password@host/database",
        ),
        ("failed to lookup address", "the host in the URL has no address"),
        (
            "server does not support TLS",
            "set `ssl = on` and a certificate at the server, or `sslmode=disable` where nobody can listen in",
        ),
        (
            "CaUsedAsEndEntity",
            "the certificate of an authority is used as the server's own: give the server one that the authority signed \
             (basicConstraints CA:FALSE, the host in subjectAltName), and name the authority's in sslrootcert",
        ),
        (
            "UnknownIssuer",
            "`sslrootcert=FILE` in the URL names the authority that signed the server's certificate",
        ),
        ("not valid for name", "the host in the URL must stand in the certificate's subjectAltName"),
        ("Expired", "the server needs a new certificate"),
    ];
    HINTS.iter().find(|(part, _)| words.contains(part)).map(|(_, hint)| *hint)
}
