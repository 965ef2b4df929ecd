//! The hand of this room: `memory/tokens.json` and `memory/admin.token`.
//!
//! Every change reads the file, makes another roster and replaces the file, in a turn of its own, and hands
//! the new roster back for a gateway to put in force. Where several gateways share a roster it is elsewhere, and is
//! replaced only by those who have read it; the file is then what the first of them begins with.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::role::{Role, Standing};
use super::roster::{Roster, RosterFault};
use super::stored::StoredFault;
use super::token::{Name, Token, TokenText};
use crate::limits;
use crate::os::{files, random, turns};
use crate::policy::plain;
use crate::timestamp::Timestamp;

/// Where a workspace keeps its tokens.
#[derive(Debug, Clone)]
pub struct TokenFiles {
    workspace: PathBuf,
    shared: Option<Sharing>,
    /// The person in whose name they are changed; nothing for an administrator.
    by: Option<Name>,
}

/// Where several gateways keep one roster.
#[derive(Debug, Clone)]
struct Sharing {
    roster: Arc<dyn SharedRoster>,
    /// The name of this gateway's own admin token.
    admin: String,
}

/// A roster that several gateways share: a text that is replaced only by those who have read it.
pub trait SharedRoster: fmt::Debug + Send + Sync {
    /// The text, and the revision it was changed with last; nothing if there is none yet.
    fn read(&self) -> Result<Option<(String, u64)>, String>;

    /// Replaces the text as it was at a revision, or makes the first. False if it is another one by now.
    fn replace(&self, text: &str, as_of: Option<u64>) -> Result<bool, String>;
}

/// Why the tokens cannot be read or changed. Nobody is let in by a file that cannot be read.
#[derive(Debug)]
pub enum TokenFault {
    Io {
        path: PathBuf,
        why: String,
    },
    Broken {
        path: PathBuf,
        faults: Vec<StoredFault>,
    },
    /// A roster that is shared could not be asked for.
    Shared(String),
    Refused(RosterFault),
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{} {why}", path.display()),
            Self::Broken { path, faults } => {
                write!(f, "{} is broken", path.display())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Shared(why) => {
                write!(f, "the roster in the ledger's database can be neither read nor changed: {why}")
            }
            Self::Refused(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for TokenFault {}

impl From<RosterFault> for TokenFault {
    fn from(fault: RosterFault) -> Self {
        Self::Refused(fault)
    }
}

/// How `memory/admin.token` was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminFile {
    /// It holds a token that counts.
    Kept,
    /// A new token was made and written to it.
    Made,
    /// Its token was revoked or has expired, and there is another admin: that was somebody's will.
    Retired,
}

impl TokenFiles {
    pub fn of(workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), shared: None, by: None }
    }

    /// The roster is shared, and `name` tells this gateway's own admin token from those of the others.
    #[must_use]
    pub fn sharing(self, roster: Arc<dyn SharedRoster>, name: &str) -> Self {
        let admin = format!("{}-{name}", Roster::ADMIN);
        Self { shared: Some(Sharing { roster, admin }), ..self }
    }

    /// The same, to be changed in a person's name: what they make and revoke says so.
    #[must_use]
    pub fn by(self, person: Option<Name>) -> Self {
        Self { by: person, ..self }
    }

    pub fn tokens(&self) -> PathBuf {
        self.workspace.join("memory/tokens.json")
    }

    /// The token that the command line on this machine uses.
    pub fn admin(&self) -> PathBuf {
        self.workspace.join("memory/admin.token")
    }

    /// Reads the roster; a workspace without one has no tokens.
    pub fn load(&self) -> Result<Roster, TokenFault> {
        self.load_if_any().map(Option::unwrap_or_default)
    }

    /// The same, for whoever has to know that there is none.
    pub fn load_if_any(&self) -> Result<Option<Roster>, TokenFault> {
        self.load_as_of().map(|(roster, _)| roster)
    }

    /// The same, and the revision of one that is shared. Where none is shared yet, the workspace's own is where it begins.
    fn load_as_of(&self) -> Result<(Option<Roster>, Option<u64>), TokenFault> {
        let Some(sharing) = &self.shared else { return Ok((self.load_file()?, None)) };
        let path = PathBuf::from("the roster in the ledger's database");
        match sharing.roster.read() {
            Ok(None) => Ok((self.load_file()?, None)),
            Ok(Some((text, revision))) => {
                let roster = Roster::parse(text.as_bytes());
                roster
                    .map(|roster| (Some(roster), Some(revision)))
                    .map_err(|faults| TokenFault::Broken { path, faults })
            }
            Err(why) => Err(TokenFault::Shared(why)),
        }
    }

    fn load_file(&self) -> Result<Option<Roster>, TokenFault> {
        let path = self.tokens();
        match files::read_private(&path, limits::TOKENS_FILE.bytes_max) {
            Ok(bytes) => {
                Roster::parse(&bytes).map(Some).map_err(|faults| TokenFault::Broken { path, faults })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TokenFault::Io { path, why: plain(&error) }),
        }
    }

    /// Makes a token: the new roster, the token in it, and its text, which nobody will see again.
    pub fn make(
        &self,
        name: Name,
        standing: Standing,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(Roster, Token, TokenText), TokenFault> {
        let (token, text) = self.draw(name, standing, now, expires_at)?;
        let token = Token { made_by: self.by.clone(), ..token };
        let (roster, ()) = self.change(|roster| Ok((roster.with(token.clone())?, ())))?;
        Ok((roster, token, text))
    }

    /// Changes the roster in a turn of its own. One that is shared may have been changed meanwhile: then it is read again.
    fn change<T>(
        &self,
        change: impl Fn(&Roster) -> Result<(Roster, T), TokenFault>,
    ) -> Result<(Roster, T), TokenFault> {
        let _turn = self.turn()?;
        for _ in 0..limits::TOKENS_TRIES_MAX {
            let (before, as_of) = self.load_as_of()?;
            let (roster, done) = change(&before.unwrap_or_default())?;
            if self.save(&roster, as_of)? {
                return Ok((roster, done));
            }
        }
        Err(TokenFault::Io { path: self.tokens(), why: "is being changed by others all the time".to_owned() })
    }

    /// Revokes a token, named by its name or its id: the new roster, and the token.
    pub fn revoke(&self, which: &str, now: Timestamp) -> Result<(Roster, Token), TokenFault> {
        self.change(|roster| Ok(roster.revoked_by(which, now, self.by.as_ref())?))
    }

    /// The same for one whose revocation was forgotten; one that is revoked already, or that nobody has, is left.
    pub fn revoke_if_it_counts(&self, id: &str, now: Timestamp) -> Result<(), TokenFault> {
        match self.revoke(id, now) {
            Ok(_) | Err(TokenFault::Refused(RosterFault::Unknown(_) | RosterFault::AlreadyRevoked(_))) => {
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Sees to it that somebody can administer the workspace: the roster, and what became of
    /// `memory/admin.token`.
    ///
    /// A file whose token the roster does not know is replaced, and its token stays refused: whoever lost or
    /// deleted the roster may have revoked it, or somebody else may have put it there. A token named `admin`
    /// of which the file is gone is revoked: nobody knows who has it.
    pub fn ensure_admin(&self, now: Timestamp) -> Result<(Roster, AdminFile), TokenFault> {
        let roster = self.load()?;
        if let Some(text) = self.read_admin()?
            && let Some(token) = roster.token_of(&text)
            && token.role() == Role::Admin
        {
            if token.is_valid_at(now) {
                return Ok((roster, AdminFile::Kept));
            }
            if roster.has_admin(now) {
                return Ok((roster, AdminFile::Retired));
            }
        }
        let name = self.shared.as_ref().map_or(Roster::ADMIN, |sharing| &sharing.admin);
        let parsed = name.parse().map_err(|why| TokenFault::Io { path: self.admin(), why })?;
        let (token, text) = self.draw(parsed, Standing::admin(), now, None)?;
        // The roster first: a crash between the two leaves a file that does not fit, and the next start
        // makes another token.
        let (roster, ()) = self.change(|roster| {
            let without = match roster.revoked(name, now) {
                Ok((without, _)) => without,
                Err(RosterFault::Unknown(_) | RosterFault::AlreadyRevoked(_)) => roster.clone(),
                Err(fault) => return Err(fault.into()),
            };
            Ok((without.with(token.clone())?, ()))
        })?;
        let path = self.admin();
        let line = zeroize::Zeroizing::new(format!("{}\n", text.expose()));
        files::replace_private(&path, line.as_bytes())
            .map_err(|error| TokenFault::Io { path, why: plain(&error) })?;
        Ok((roster, AdminFile::Made))
    }

    /// The text in `memory/admin.token`, if there is one.
    pub fn read_admin(&self) -> Result<Option<zeroize::Zeroizing<String>>, TokenFault> {
        let path = self.admin();
        match files::read_private(&path, limits::TOKEN_FILE_BYTES_MAX) {
            Ok(bytes) => {
                let bytes = zeroize::Zeroizing::new(bytes);
                let text = std::str::from_utf8(&bytes).unwrap_or_default().trim_ascii_end();
                Ok(Some(zeroize::Zeroizing::new(text.to_owned())))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TokenFault::Io { path, why: plain(&error) }),
        }
    }

    fn turn(&self) -> Result<turns::Turn, TokenFault> {
        turns::take(&self.workspace, ".tokens.lock")
            .map_err(|error| TokenFault::Io { path: self.tokens(), why: format!("has no turn: {error}") })
    }

    fn draw(
        &self,
        name: Name,
        standing: Standing,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(Token, TokenText), TokenFault> {
        let random = random::secret_bytes::<32>()
            .map_err(|error| TokenFault::Io { path: self.tokens(), why: format!("has no token: {error}") })?;
        Ok(Token::make(name, standing, now, expires_at, &random))
    }

    /// False if it is shared, and was changed since it was read.
    fn save(&self, roster: &Roster, as_of: Option<u64>) -> Result<bool, TokenFault> {
        let path = self.tokens();
        if let Some(sharing) = &self.shared {
            let text = String::from_utf8(roster.to_file()).unwrap_or_default();
            return sharing.roster.replace(&text, as_of).map_err(TokenFault::Shared);
        }
        files::replace_private(&path, &roster.to_file())
            .map(|()| true)
            .map_err(|error| TokenFault::Io { path, why: plain(&error) })
    }
}
