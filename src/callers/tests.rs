//! Tokens and roles: what each role may do, how the text of a token is found, and the file that keeps the roster.

mod requests;
mod sessions;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;

use super::nonces::NonceBounds;
use super::*;
use crate::limits;
use crate::proof::{Digest, Key, Keyring, Purpose, Secret, Seed};
use crate::timestamp::Timestamp;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn now() -> Timestamp {
    at("2026-02-18T19:38:00Z")
}

fn standing(role: Role) -> Standing {
    let agent = matches!(role, Role::Orchestrator | Role::Agent).then_some("decision-router");
    Standing::of(role, agent, None).unwrap()
}

/// A token made of the number's randomness.
fn made(name: &str, standing: Standing, number: u64) -> (Token, TokenText) {
    let random = Digest::of(&number.to_le_bytes());
    Token::make(name.parse().unwrap(), standing, now(), None, random.as_bytes())
}

fn roster_of(tokens: impl IntoIterator<Item = Token>) -> Roster {
    tokens.into_iter().fold(Roster::default(), |roster, token| roster.with(token).unwrap())
}

#[test]
fn a_role_has_what_belongs_to_it_and_nothing_else() {
    let check =
        |role: Role, agent: Option<&str>, principal: Option<&str>, expected: Option<StandingFault>| {
            let found = Standing::of(role, agent, principal);
            assert_eq!(found.as_ref().err().copied(), expected, "{role} {agent:?} {principal:?}");
            if let Ok(standing) = found {
                assert_eq!(
                    (standing.role(), standing.agent_id(), standing.principal()),
                    (role, agent, principal)
                );
            }
        };
    for role in [Role::Orchestrator, Role::Agent] {
        check(role, Some("crypto-sage"), None, None);
        check(role, None, None, Some(StandingFault::AgentMissing(role)));
    }
    check(Role::Harness, None, None, None);
    check(Role::Harness, Some("crypto-sage"), None, None);
    for role in [Role::Operator, Role::Auditor, Role::Admin] {
        check(role, None, None, None);
        check(role, Some("crypto-sage"), None, Some(StandingFault::AgentSpare(role)));
    }
    check(Role::Operator, None, Some("user:rita"), None);
    for role in [Role::Harness, Role::Auditor, Role::Admin] {
        check(role, None, Some("user:rita"), Some(StandingFault::PrincipalSpare(role)));
    }
    for (agent, sound) in
        [("a", false), ("ab", true), (&*"é".repeat(64), true), (&*"a".repeat(65), false), ("a\nb", false)]
    {
        check(Role::Agent, Some(agent), None, (!sound).then_some(StandingFault::AgentInvalid));
    }
    for (principal, sound) in [("", false), ("u", true), (&*"u".repeat(129), false), ("u\u{7f}", false)] {
        check(Role::Operator, None, Some(principal), (!sound).then_some(StandingFault::PrincipalInvalid));
    }
}

#[test]
fn names_and_roles_are_read_exactly() {
    for (text, sound) in [
        ("rita", true),
        ("ci.bot_7:eu@home-1", true),
        (&*"n".repeat(64), true),
        ("", false),
        (&*"n".repeat(65), false),
        ("two words", false),
        ("ritá", false),
        ("a/b", false),
        ("tok_0011223344556677", false),
    ] {
        assert_eq!(text.parse::<Name>().is_ok(), sound, "{text}");
    }
    for role in Role::ALL {
        assert_eq!(role.as_str().parse(), Ok(role));
    }
    assert!("Admin".parse::<Role>().is_err());
}

/// The whole matrix: o orchestrator, a agent, p operator, h harness, u auditor, d admin.
#[test]
fn each_role_may_do_what_the_table_says() {
    let table = [
        (Act::Submit, "o....d"),
        (Act::Check, "o.p..d"),
        (Act::ReadHandoffs, "oaphud"),
        (Act::ReadAudit, "..p.ud"),
        (Act::ReadState, "..p.ud"),
        (Act::ReadPolicies, "..p.ud"),
        (Act::ReadRoutes, "oaphud"),
        (Act::ReadMentions, "..p.ud"),
        (Act::ReadApprovals, "..p.ud"),
        (Act::ReportEvent, "oap..."),
        (Act::Approve, "..p..."),
        (Act::ApprovePolicies, "..p..."),
        (Act::Authorize, "..p..."),
        (Act::Promote, "..p..."),
        (Act::AttachEvidence, "..ph.."),
        (Act::Freeze, "..p..d"),
        (Act::Unfreeze, "..p..."),
        (Act::MoveMentionPhase, "..p..."),
        (Act::RegisterHarness, "..p..d"),
        (Act::ManageTokens, ".....d"),
        (Act::ManageKeys, ".....d"),
        (Act::ConvertEvidence, "oaphud"),
        (Act::SpeakA2a, "oaphud"),
        (Act::OpenConsole, "..p.ud"),
    ];
    assert_eq!(table.map(|(act, _)| act), Act::ALL, "every act has its line");
    for (act, row) in table {
        for (role, letter) in Role::ALL.into_iter().zip(row.chars()) {
            assert_eq!(role.may(act), letter != '.', "{role} {act:?}");
        }
    }
}

#[test]
fn a_caller_sees_its_own_handoffs_and_only_operators_are_human() {
    for role in Role::ALL {
        let (token, _) = made("rita", standing(role), 1);
        let caller = token.caller();
        let seen = [("decision-router", "x-agent"), ("x-agent", "decision-router"), ("x-agent", "y-agent")]
            .map(|(source, target)| caller.sees(source, target));
        let expected = match role {
            Role::Orchestrator => [true, false, false],
            Role::Agent => [false, true, false],
            _ => [true; 3],
        };
        assert_eq!(seen, expected, "{role}");
        assert_eq!(caller.human(), (role == Role::Operator).then_some("rita"));
    }
}

#[test]
fn a_token_is_found_until_it_is_revoked_or_expires() {
    let (token, text) = made("rita", standing(Role::Operator), 1);
    let roster = roster_of([token.clone()]);
    assert_eq!(roster.find(text.expose(), now()).unwrap().name().as_str(), "rita");
    for which in ["rita".to_owned(), token.fingerprint().to_string()] {
        let (revoked, it) = roster.revoked(&which, now()).unwrap();
        assert_eq!(it.revoked_at(), Some(now()));
        // Also when the clock is set back behind the revocation.
        assert_eq!(revoked.find(text.expose(), now().plus_seconds(-3600)), None);
        assert_eq!(revoked.named("rita", now()), None);
        assert_eq!(revoked.revoked(&which, now()), Err(RosterFault::AlreadyRevoked(which.clone())));
    }
    assert!(roster.find(text.expose(), now()).is_some(), "the old roster is as it was");
    assert_eq!(roster.revoked("nobody", now()).err(), Some(RosterFault::Unknown("nobody".to_owned())));

    let until = now().plus_seconds(60);
    let (token, text) =
        Token::make("ci".parse().unwrap(), standing(Role::Auditor), now(), Some(until), &[7; 32]);
    let roster = roster_of([token]);
    assert!(roster.find(text.expose(), now().plus_seconds(59)).is_some());
    assert_eq!(roster.find(text.expose(), until), None);
    assert_eq!(roster.named("ci", until), None);
}

#[test]
fn the_text_of_a_token_is_long_regular_and_never_shown() {
    for role in Role::ALL {
        let (token, text) = made("rita", standing(role), 9);
        let (start, random) = text.expose().split_at(7);
        assert!(start.starts_with("hd_") && start.ends_with('_'), "{start}");
        assert_eq!(random.len(), 43);
        assert_eq!(TokenId::of_text(text.expose()), Some(token.fingerprint()));
        let shown = format!("{text:?} {token:?} {:?}", roster_of([token.clone()]));
        assert!(shown.starts_with("[secret] ") && !shown.contains(random));
        assert!(!shown.contains(&Digest::of(text.expose().as_bytes()).to_string()[..20]), "{shown}");
    }
    // All 256 bits are in it: RFC 4648's alphabet, as another program writes it.
    let bytes: Vec<u8> = (0..32).map(|n| 255 - n * 8).collect();
    let (_, text) = Token::make(
        "x".parse().unwrap(),
        standing(Role::Admin),
        now(),
        None,
        bytes.as_slice().try_into().unwrap(),
    );
    assert_eq!(text.expose(), "hd_adm___fv59_Xz8e_t6-nn5ePh393b2dfV09HPzcvJx8XDwc");
    let mut signed = requests::request("good");
    signed.signature = "0123456789abcdef";
    assert!(!format!("{signed:?}").contains(signed.signature));
    for foreign in ["", "hd_", "hd_adm_", "hd_xyz__________", &"x".repeat(50)] {
        assert_eq!(TokenId::of_text(foreign), None, "{foreign}");
    }
}

#[test]
fn names_are_unique_among_tokens_that_are_not_revoked() {
    let (first, _) = made("rita", standing(Role::Operator), 1);
    let (second, text) = made("rita", standing(Role::Auditor), 2);
    let roster = roster_of([first.clone()]);
    assert_eq!(roster.with(second.clone()).err(), Some(RosterFault::NameTaken("rita".parse().unwrap())));
    assert_eq!(roster.with(first).err(), Some(RosterFault::Duplicate));
    let roster = roster.revoked("rita", now()).unwrap().0.with(second).unwrap();
    assert_eq!(roster.find(text.expose(), now()), roster.named("rita", now()));
    assert_eq!(roster.named("rita", now()).unwrap().role(), Role::Auditor);
    // The next one of that name is meant, not the one that was revoked before.
    assert_eq!(roster.revoked("rita", now()).unwrap().1.role(), Role::Auditor);

    let (impostor, _) = made("admin", standing(Role::Operator), 3);
    assert_eq!(roster.with(impostor).err(), Some(RosterFault::NameReserved(Role::Operator)));
    let (brief, _) =
        Token::make("brief".parse().unwrap(), standing(Role::Admin), now(), Some(now()), &[1; 32]);
    assert_eq!(roster.with(brief).err(), Some(RosterFault::EndsBeforeItBegins));
}

#[test]
fn a_full_roster_forgets_what_was_revoked_first_and_nothing_that_counts() {
    let token = |n: usize| made(&format!("t{n}"), standing(Role::Auditor), n as u64).0;
    let mut roster = Roster::default();
    for n in 0..limits::TOKENS_MAX {
        roster.push(token(n)).unwrap();
    }
    let one_more = token(limits::TOKENS_MAX);
    assert_eq!(roster.with(one_more.clone()).err(), Some(RosterFault::TooMany));
    let roster = roster.revoked("t3", now().plus_seconds(1)).unwrap().0.revoked("t5", now()).unwrap().0;
    let roster = roster.with(one_more).unwrap();
    assert_eq!(roster.tokens().len(), limits::TOKENS_MAX);
    let names: HashSet<&str> = roster.tokens().iter().map(|token| token.name().as_str()).collect();
    assert!(names.contains("t3") && !names.contains("t5"), "t5 was revoked first");
    assert!(roster.to_file().len() < limits::TOKENS_FILE.bytes_max);
}

/// A file with one thing wrong is refused, with the place.
#[test]
fn a_tokens_file_is_read_strictly() {
    let (token, _) = made("rita", standing(Role::Operator), 1);
    let good = String::from_utf8(roster_of([token]).to_file()).unwrap();
    assert!(Roster::parse(good.as_bytes()).is_ok());
    let check = |from: &str, to: &str, pointers: &[&str]| {
        assert!(good.contains(from), "{from}");
        let faults = Roster::parse(good.replacen(from, to, 1).as_bytes()).unwrap_err();
        let found: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(found, pointers, "{to}: {faults:?}");
    };
    check("\"tokens\"", "\"token\"", &["/token", ""]);
    check("{\n  \"tokens\"", "{\"version\": 1, \"tokens\"", &["/version"]);
    check("\"rita\"", "\"ri ta\"", &["/tokens/0/name"]);
    check("\"rita\"", "7", &["/tokens/0/name"]);
    check("\"rita\"", "\"admin\"", &["/tokens/0"]);
    check("\"operator\"", "\"king\"", &["/tokens/0/role"]);
    check("\"operator\"", "\"agent\"", &["/tokens/0/agentId"]);
    check("\"operator\",", "\"operator\", \"agentId\": \"crypto-sage\",", &["/tokens/0/agentId"]);
    check("\"operator\",", "\"auditor\", \"principal\": \"user:rita\",", &["/tokens/0/principal"]);
    check("tok_", "tok_0", &["/tokens/0/tokenId"]);
    check("sha256:", "sha256:0", &["/tokens/0/hash"]);
    check("\"hash\"", "\"hush\"", &["/tokens/0/hush", "/tokens/0/hash"]);
    check("19:38:00Z", "19:38Z", &["/tokens/0/createdAt"]);
    check("19:38:00Z\"", "19:38:00Z\", \"expiresAt\": \"2026-02-18T19:38:00Z\"", &["/tokens/0"]);
    check("19:38:00Z\"", "19:38:00Z\", \"revokedAt\": null", &["/tokens/0/revokedAt"]);
    check("\"name\"", "\"tokenId\": 1, \"name\"", &["/tokens/0/tokenId"]);
    check("\"tokens\": [", "\"tokens\": [7,", &["/tokens/0"]);
    // All at once.
    let two = good.replace("\"rita\"", "\"\"").replace("\"operator\"", "\"king\"");
    assert_eq!(Roster::parse(two.as_bytes()).unwrap_err().len(), 2);
    let many = format!("{{\"tokens\":[{}7]}}", "7,".repeat(1000));
    assert_eq!(Roster::parse(many.as_bytes()).unwrap_err().len(), limits::TOKENS_FAULTS_MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_the_text_that_was_made_is_found(random in any::<[u8; 32]>(), place in 0..50usize, put in any::<char>(), other in ".*") {
        let (token, text) =
            Token::make("rita".parse().unwrap(), standing(Role::Operator), now(), None, &random);
        let roster = roster_of([token]);
        prop_assert!(roster.find(text.expose(), now()).is_some());
        let changed: String =
            text.expose().chars().enumerate().map(|(n, c)| if n == place { put } else { c }).collect();
        prop_assert_eq!(roster.find(&changed, now()).is_some(), changed == text.expose());
        prop_assert!(roster.find(&other, now()).is_none());
        let longer = [text.expose(), " "].concat();
        prop_assert!(roster.find(&longer, now()).is_none());
        prop_assert!(roster.find(&text.expose()[..place], now()).is_none());
        // What is kept lets nobody in.
        let kept = String::from_utf8(roster.to_file()).unwrap();
        prop_assert!(!kept.contains(&text.expose()[7..]));
        for word in kept.split('"') {
            prop_assert!(roster.find(word, now()).is_none());
        }
    }

    #[test]
    fn a_roster_survives_writing_and_reading(
        tokens in prop::collection::vec((0..6usize, "[^\\p{Cc}]{2,64}", any::<bool>(), any::<u32>(), any::<bool>()), 0..20)
    ) {
        let mut roster = Roster::default();
        for (n, (role, word, told, nanoseconds, revoked)) in tokens.into_iter().enumerate() {
            let role = Role::ALL[role];
            let agent = matches!(role, Role::Orchestrator | Role::Agent) || role == Role::Harness && told;
            let principal = role == Role::Operator && told;
            let standing =
                Standing::of(role, agent.then_some(word.as_str()), principal.then_some(word.as_str())).unwrap();
            let created = Timestamp::from_unix_nanoseconds(1_700_000_000_000_000_000 + i64::from(nanoseconds));
            let expires = told.then(|| created.plus_nanosecond());
            let random = Digest::of(&n.to_le_bytes());
            let name = format!("t{n}").parse().unwrap();
            let (token, _) = Token::make(name, standing, created, expires, random.as_bytes());
            roster = roster.with(token).unwrap();
            if revoked {
                roster = roster.revoked(&format!("t{n}"), created).unwrap().0;
            }
        }
        prop_assert_eq!(Roster::parse(&roster.to_file()), Ok(roster));
    }
}

fn workspace() -> (tempfile::TempDir, TokenFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = TokenFiles::of(directory.path());
    (directory, files)
}

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
fn write(path: std::path::PathBuf, text: &str) {
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn the_admin_token_is_made_once_and_again_when_it_no_longer_fits() {
    let (_directory, files) = workspace();
    let text = || files.read_admin().unwrap().unwrap().to_string();
    let (roster, state) = files.ensure_admin(now()).unwrap();
    assert_eq!(state, AdminFile::Made);
    assert_eq!(roster.find(&text(), now()).unwrap().role(), Role::Admin);
    for path in [files.admin(), files.tokens()] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let first = text();
    assert_eq!(files.ensure_admin(now()).unwrap(), (roster, AdminFile::Kept));
    assert_eq!(text(), first);

    // The file is gone: a new token, and the lost one is refused.
    fs::remove_file(files.admin()).unwrap();
    let (roster, state) = files.ensure_admin(now()).unwrap();
    assert_eq!((state, roster.find(&first, now())), (AdminFile::Made, None));
    let second = text();

    // The roster is gone: what the file holds is not believed.
    fs::remove_file(files.tokens()).unwrap();
    let (roster, state) = files.ensure_admin(now()).unwrap();
    assert_eq!((state, roster.find(&second, now())), (AdminFile::Made, None));
    assert!(roster.find(&text(), now()).is_some());

    // Cut short by a crash.
    write(files.admin(), "hd_adm_");
    assert_eq!(files.ensure_admin(now()).unwrap().1, AdminFile::Made);

    // Revoked, and nobody else could administer.
    files.revoke("admin", now()).unwrap();
    assert_eq!(files.ensure_admin(now()).unwrap().1, AdminFile::Made);
    // Revoked by an admin who has another token.
    files.make("root".parse().unwrap(), Standing::admin(), now(), None).unwrap();
    files.revoke("admin", now()).unwrap();
    let (roster, state) = files.ensure_admin(now()).unwrap();
    assert_eq!((state, roster.find(&text(), now())), (AdminFile::Retired, None));

    // The text of somebody who is no admin does not become one.
    let (_, _, operator) =
        files.make("rita".parse().unwrap(), standing(Role::Operator), now(), None).unwrap();
    write(files.admin(), operator.expose());
    assert_eq!(files.ensure_admin(now()).unwrap().1, AdminFile::Made);
}

#[test]
fn files_that_others_can_read_or_that_are_broken_are_refused() {
    let (directory, files) = workspace();
    files.ensure_admin(now()).unwrap();
    for path in [files.tokens(), files.admin()] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let fault = files.ensure_admin(now()).unwrap_err().to_string();
        assert!(fault.contains("can be read by others (mode 640); run: chmod 600"), "{fault}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    write(files.tokens(), "{\"tokens\": [{}]}");
    let before = fs::read(files.tokens()).unwrap();
    let fault = files.make("x".parse().unwrap(), standing(Role::Admin), now(), None).unwrap_err().to_string();
    assert!(fault.contains("tokens.json is broken\n  at /tokens/0/name: is missing"), "{fault}");
    assert_eq!(fs::read(files.tokens()).unwrap(), before, "and stays as it is");
    let gone = TokenFiles::of(&directory.path().join("nowhere"));
    assert!(gone.ensure_admin(now()).unwrap_err().to_string().contains("nowhere is not a directory"));
}

#[test]
fn commands_that_change_the_roster_take_turns() {
    let (_directory, files) = workspace();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let files = &files;
            scope.spawn(move || {
                files.make(format!("t{n}").parse().unwrap(), Standing::admin(), now(), None).unwrap()
            });
        }
    });
    assert_eq!(files.load().unwrap().tokens().len(), 8);
}
