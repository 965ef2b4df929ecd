//! The hand of this room: `memory/tokens.json` and `memory/admin.token`.
//!
//! Every change reads the file, makes another roster and replaces the file, in a turn of its own, and hands
//! the new roster back for a gateway to put in force.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
}

/// Why the tokens cannot be read or changed. Nobody is let in by a file that cannot be read.
#[derive(Debug)]
pub enum TokenFault {
    Io { path: PathBuf, why: String },
    Broken { path: PathBuf, faults: Vec<StoredFault> },
    Refused(RosterFault),
}

impl fmt::Display for TokenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{} {why}", path.display()),
            Self::Broken { path, faults } => {
                write!(f, "{} is broken, so no token counts", path.display())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
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
        Self { workspace: workspace.to_owned() }
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
        let path = self.tokens();
        match files::read_private(&path, limits::TOKENS_FILE.bytes_max) {
            Ok(bytes) => Roster::parse(&bytes).map_err(|faults| TokenFault::Broken { path, faults }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Roster::default()),
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
        let _turn = self.turn()?;
        let (token, text) = self.draw(name, standing, now, expires_at)?;
        let roster = self.load()?.with(token.clone())?;
        self.save(&roster)?;
        Ok((roster, token, text))
    }

    /// Revokes a token, named by its name or its id: the new roster, and the token.
    pub fn revoke(&self, which: &str, now: Timestamp) -> Result<(Roster, Token), TokenFault> {
        let _turn = self.turn()?;
        let (roster, token) = self.load()?.revoked(which, now)?;
        self.save(&roster)?;
        Ok((roster, token))
    }

    /// Sees to it that somebody can administer the workspace: the roster, and what became of
    /// `memory/admin.token`.
    ///
    /// A file whose token the roster does not know is replaced, and its token stays refused: whoever lost or
    /// deleted the roster may have revoked it, or somebody else may have put it there. A token named `admin`
    /// of which the file is gone is revoked: nobody knows who has it.
    pub fn ensure_admin(&self, now: Timestamp) -> Result<(Roster, AdminFile), TokenFault> {
        let _turn = self.turn()?;
        let mut roster = self.load()?;
        if let Some(text) = self.read_admin()?
            && let Some(token) = roster.token_of(&text)
            && token.role() == Role::Admin
        {
            if token.is_valid_at(now) {
                return Ok((roster, AdminFile::Kept));
            }
            let is_admin = |token: &&Token| token.role() == Role::Admin && token.is_valid_at(now);
            if roster.tokens().iter().find(is_admin).is_some() {
                return Ok((roster, AdminFile::Retired));
            }
        }
        match roster.revoked(Roster::ADMIN, now) {
            Ok((without, _)) => roster = without,
            Err(RosterFault::Unknown(_) | RosterFault::AlreadyRevoked(_)) => {}
            Err(fault) => return Err(fault.into()),
        }
        let name = Roster::ADMIN.parse().map_err(|why| TokenFault::Io { path: self.admin(), why })?;
        let (token, text) = self.draw(name, Standing::admin(), now, None)?;
        roster = roster.with(token)?;
        // The roster first: a crash between the two leaves a file that does not fit, and the next start
        // makes another token.
        self.save(&roster)?;
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

    fn save(&self, roster: &Roster) -> Result<(), TokenFault> {
        let path = self.tokens();
        files::replace_private(&path, &roster.to_file())
            .map_err(|error| TokenFault::Io { path, why: plain(&error) })
    }
}
