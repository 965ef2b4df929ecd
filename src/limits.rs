//! Every bound, named. Units stand last.

use std::ops::RangeInclusive;

use crate::json::Bounds;

/// What a TaskSpec may weigh: 256 KiB, 64 levels.
pub const TASK_SPEC: Bounds = Bounds { bytes_max: 256 * 1024, levels_max: 64 };

/// What a file of the policy set, the keyring or a case file may weigh.
pub const WORKSPACE_FILE: Bounds = Bounds { bytes_max: 1024 * 1024, levels_max: 64 };

/// How far a sender's clock may run ahead of ours.
pub const SKEW_S: i64 = 120;

/// How long a handoff waits for a person, at most.
pub const APPROVAL_WAIT_S: i64 = 15 * 60;

/// What an operator's reason may be long, in characters; and what an event carries around its payload, at most.
pub const REASON_CHARS_MAX: usize = EVENT_TEXT_CHARS_MAX;
pub const EVENT_ENVELOPE_BYTES_MAX: usize = 1024;

/// How many changed policy sets are remembered that nobody said yes to, and how many changed files of one are named.
pub const PROPOSALS_KEPT_MAX: usize = 32;
pub const CHANGED_FILES_LISTED_MAX: usize = 100;
pub const FILE_LIST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a grant lasts at most; how often it may be used and how many names its lists have, its schema says.
pub const GRANT_S_MAX: i64 = 30 * 86_400;

/// Grants that are kept, and how long each is after it was made: as long as it can last, and once more so that what
/// names it is told why it no longer counts.
pub const GRANTS_MAX: usize = 100_000;
pub const GRANT_KEPT_S: i64 = 2 * GRANT_S_MAX;

/// Handoffs that wait for a person at a time.
pub const WAITING_APPROVALS_MAX: usize = 10_000;

/// The body of an operator's act.
pub const ACT: Bounds = Bounds { bytes_max: 64 * 1024, levels_max: 8 };

/// How much of the TaskSpecs that wait one page shows; a page has at least one.
pub const APPROVALS_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// How long a caller may wait for a person in one request.
pub const WAIT_S_MAX: u64 = 60;

/// How many handoffs in flight the answer to a freeze names.
pub const IN_FLIGHT_LISTED_MAX: usize = 1_000;

/// How many handoffs a message may have led to for all of them to be named.
pub const MESSAGE_HANDOFFS_LISTED_MAX: usize = 20;

/// What is shown of one line of a message that another program has made.
pub const MESSAGE_LINE_CHARS_MAX: usize = 500;

/// Things that are wrong with a file that one line of the log tells; more are counted.
pub const MESSAGE_FAULTS_MAX: usize = 5;

/// Messages that were held back by the mention phase and are remembered, so that duplicates are counted; and mentions
/// that were marked as false positives and are remembered, so that none is counted twice.
pub const SHADOW_CLAIMS_MAX: usize = 10_000;
pub const MARKED_MENTIONS_MAX: usize = 10_000;

/// How long a receipt holds, at most.
pub const RECEIPT_S: i64 = 5 * 60;

/// What a receipt, a Decision that carries one, or a dispatched payload may weigh: a TaskSpec, and what the
/// gateway puts around it.
pub const RECEIPT_FILE: Bounds = Bounds { bytes_max: 1024 * 1024, levels_max: 72 };

/// A set of public keys, and how long fetching one may take.
pub const JWKS: Bounds = Bounds { bytes_max: 64 * 1024, levels_max: 8 };
pub const JWKS_FETCH_S: u64 = 10;

/// Files in a workspace that TaskSpecs may refer to, and their bytes together.
pub const REFERENCE_FILES_MAX: usize = 10_000;
pub const REFERENCE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A route as a whole: the ledger has it in one event.
pub const ROUTE_BYTES_MAX: usize = 4 * 1024;

/// Headings of a document that are kept, and characters of each.
pub const OUTLINE_HEADINGS_MAX: usize = 256;
pub const OUTLINE_HEADING_CHARS_MAX: usize = 200;

/// How deep below the workspace root references are looked for.
pub const REFERENCE_LEVELS_MAX: usize = 16;

/// Compiled input schemas that are kept at hand.
pub const COMPILED_SCHEMAS_MAX: u64 = 256;

/// Schema errors that one answer lists; a body can be wrong in as many places as it has bytes.
pub const SCHEMA_REASONS_MAX: usize = 100;

/// Keys in a keyring.
pub const KEYS_MAX: usize = 10_000;

/// The canonical text of one Wire event.
pub const EVENT_BYTES_MAX: usize = 8 * 1024;

/// A ledger segment that has reached this is followed by a new one.
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The journal of a ledger's last segment: how much is written to it before the segment itself is synced.
pub const JOURNAL_BYTES: usize = 1024 * 1024;

/// A larger batch is synced in its segment: writing it twice would take longer than the journal saves.
pub const JOURNAL_BATCH_BYTES_MAX: usize = 32 * 1024;

/// Batches that are durable and wait for the teller's thread; the writer waits for it when there are more.
pub const TALES_WAITING_MAX: usize = 2;

/// How often a dry run looks whether the sequencer is free, giving up the processor in between, before it has a thread
/// wait for it.
pub const SEQUENCER_LOOKS: usize = 64;

/// Decisions that may wait to be sequenced and made durable.
pub const WAITING_DECISIONS_MAX: usize = 10_000;

/// What the clock that stamps files may take for one step: two writes within it may look like one.
pub const FILE_CLOCK_STEP_MS: u64 = 100;

/// How often the writer looks whether the ledger could be written, while it has nothing to write.
pub const IDLE_CHECK_MS: u64 = 500;

/// How often the daemon looks at its own condition, to log what has changed.
pub const CONDITION_LOOK_MS: u64 = 200;

/// How often it is looked whether somebody waits for the disk on a thread of the runtime, and while nobody does.
pub const ALONE_LOOK_MS: u64 = 10;
pub const ALONE_LOOK_IDLE_MS: u64 = 100;

/// How often a segment is read in a row while something about its file changes.
pub const SEGMENT_READS_MAX: usize = 3;

/// Files of the ledger that others wrote to and whose names are kept until all was found good; were there more, it may have
/// been any.
pub const WRITTEN_NAMES_MAX: usize = 64;

/// How often full segments are looked at while nothing was heard of them.
pub const SEALED_LOOK_MS: u64 = 500;

/// Batches that are kept for those who listen; whoever is further behind reads the ledger, so many entries at once.
pub const HUB_BATCHES_MAX: usize = 256;
pub const HUB_READ_ENTRIES: u64 = 100;

/// Lines of the sink that wait before they are written even if more is at hand; how often it remembers how far it
/// came; how long it pauses when it cannot write; and what it may take at the end.
pub const SINK_LINES_BYTES: usize = 256 * 1024;
pub const SINK_POSITION_MS: u64 = 1_000;
pub const SINK_RETRY_MS: u64 = 250;
pub const SINK_FINISH_MS: u64 = 2_000;

/// The manifest of a backup; a segment has a line of some 150 bytes in it.
pub const BACKUP_MANIFEST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Traced requests that wait to be told to a collector; how many are told at once; how long they gather; and how long
/// the collector may take.
pub const SPAN_REQUESTS_WAITING_MAX: usize = 4_096;
pub const SPAN_REQUESTS_AT_ONCE: usize = 256;
pub const SPAN_GATHER_MS: u64 = 500;
pub const SPAN_POST_MS: u64 = 3_000;

/// TaskSpecs in one request.
pub const BATCH_HANDOFFS_MAX: usize = 1_000;

/// How often the disk and the clock are looked at, and what is written to see whether it can be.
pub const PROBE_MS: u64 = 400;
pub const PROBE_BYTES: usize = 4 * 1024;

/// How far the clock may be behind the ledger before somebody should look at it.
pub const CLOCK_BEHIND_S: i64 = 2;

/// Threads that wait for files, for the views and for names; each keeps a few MiB at hand while there is work. More than
/// that at once wait their turn.
pub const BLOCKING_THREADS_MAX: usize = 128;

/// Rows of a page unless its reader asks for another number.
pub const PAGE_ROWS: usize = 50;

/// How long a question waits for the views to show what was durable when it was asked.
pub const VIEW_WAIT_MS: u64 = 5_000;

/// The file with what other gateways signed: one checkpoint and one key for each that there ever was.
pub const OTHER_CHECKPOINTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much of what the gateway itself says is wrong goes into one line of the log; the facts often stand at its end.
pub const LOG_WHY_CHARS_MAX: usize = 1_000;

/// How long whoever asks for something that is not known here waits for a look at what other replicas appended.
pub const LOOKOUT_WAIT_MS: u64 = 3_000;

/// Connections to the views; more questions wait for one.
pub const VIEW_READERS_MAX: usize = 16;

/// How often a stream says that it is still there; clients give up after five seconds of silence.
pub const STREAM_HEARTBEAT_S: u64 = 2;

/// Streams that one caller follows at once; all that follow without a token are one.
pub const STREAMS_OF_ONE_CALLER_MAX: usize = 2_000;

/// How long a client may take nothing of an answer that is ready for it. Over HTTP/2 that is seen by pieces.
pub const WRITE_STALL_S: u64 = 20;
pub const STREAM_PIECE_BYTES: usize = 16 * 1024;

/// Requests under way at once on one HTTP/2 connection, and how often it is asked whether its peer is still there.
pub const HTTP2_STREAMS_MAX: u32 = 64;
pub const HTTP2_PING_S: u64 = 30;

/// How long a replica may not have seen the end of the ledger before it is not ready, in milliseconds.
pub const BEHIND_MS_MAX: u128 = 2_000;

/// How often a change of the roster is tried that others come before.
pub const TOKENS_TRIES_MAX: usize = 20;

/// Rules that change are read when they have been quiet for a moment, or after so many moments; keys and tokens are
/// glanced at so often; and everything is read every so often, where nobody tells of changes.
pub const RELOAD_SETTLE_MS: u64 = 100;
pub const RELOAD_SETTLE_MAX: usize = 10;
pub const RELOAD_GLANCE_MS: u64 = 300;
pub const RELOAD_POLL_MS: u64 = 30_000;

/// What a ledger in memory may hold, text of batches and bodies.
pub const MEMORY_LEDGER_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// What one batch may hold before it goes out, even if more is waiting.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Memory of a batch that is kept for the next one; what an unusually large one took is given back.
pub const BATCH_ROOM_KEPT_BYTES: usize = 2 * 1024 * 1024;

/// Hops along the parentHandoffId chain, and accepted mentions in one correlationId.
pub const LINEAGE_HOPS_MAX: u32 = 8;
pub const LINEAGE_MENTIONS_MAX: u32 = 8;

/// Rows of the delegation log in the state file; refusals may take half of them.
pub const DELEGATION_LOG_MAX: usize = 500;

/// A state file up to this size is published with every batch; a larger one at most so often, and with a rest of so many
/// times as long as it took.
pub const STATE_BYTES_EACH_BATCH: usize = 256 * 1024;
pub const STATE_INTERVAL_MS: u64 = 50;
pub const STATE_RESTS_PER_PUBLISH: u32 = 9;

/// A checkpoint is signed after so many entries, and when the gateway stops; shared with others after so many looks at them.
pub const CHECKPOINT_ENTRIES: u64 = 10_000;
pub const CHECKPOINT_SHARED_LOOKS: u64 = 30;

/// Levels in a Wire event.
pub const EVENT_LEVELS_MAX: usize = 64;

/// Rows that one page of a list holds, whatever its reader asks for.
pub const VIEW_PAGE_ROWS_MAX: usize = 500;

/// Attempts, and entries of all of them, that one handoff is shown with; the newest, and the first.
pub const VIEW_ATTEMPTS_MAX: usize = 1_000;
pub const VIEW_HANDOFF_ENTRIES_MAX: usize = 10_000;

/// How long a connection to the views waits for another one.
pub const VIEW_BUSY_MS: u64 = 5_000;

/// What the views' writer keeps in memory of the file, always and while it rebuilds.
pub const VIEW_CACHE_KIB: i64 = 32 * 1024;
pub const VIEW_REBUILD_CACHE_KIB: i64 = 64 * 1024;

/// Entries in one transaction while the views are rebuilt.
pub const VIEW_REBUILD_ENTRIES: usize = 50_000;

/// Entries that the views may be behind at a start without being made again, however few they hold.
pub const VIEW_CATCH_UP_MAX: u64 = 50_000;

/// Pages in the views' journal after which it is moved into the file, and what the journal is cut back to then.
pub const VIEW_JOURNAL_PAGES: i64 = 16 * 1024;
pub const VIEW_JOURNAL_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// How long the views gather entries for one transaction, and how many at most, while nobody waits for them.
pub const VIEW_GATHER_MS: u64 = 300;
pub const VIEW_GATHER_ENTRIES: usize = 6_000;

/// Prepared statements of a connection, words with their numbers, and newest runs of entries, that are kept at hand.
pub const VIEW_STATEMENTS_MAX: usize = 64;
pub const VIEW_WORDS_AT_HAND_MAX: usize = 10_000;
pub const VIEW_RUNS_AT_HAND_MAX: usize = 1_000;

/// How often a write to the views is tried before it is said that they do not follow, and how long the pause between two
/// tries is at first, and at most: room comes back when somebody makes it.
pub const VIEW_TRIES_MAX: usize = 5;
pub const VIEW_PAUSE_MS: u64 = 200;
pub const VIEW_PAUSE_MS_MAX: u64 = 5_000;

/// What the body of any request may weigh, whatever an operator sets.
pub const REQUEST_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bodies that are being read, or whose requests are not answered yet, all together and of one caller. Those of callers that
/// sign are counted apart until their signature is checked, and so are those that anybody may send.
pub const BODIES_BYTES_MAX: usize = 16 * REQUEST_BODY_BYTES_MAX;
pub const BODIES_OF_ONE_CALLER_BYTES_MAX: usize = 4 * REQUEST_BODY_BYTES_MAX;
pub const UNVERIFIED_BODIES_BYTES_MAX: usize = 4 * REQUEST_BODY_BYTES_MAX;
pub const UNVERIFIED_BODIES_OF_ONE_KEY_BYTES_MAX: usize = 2 * REQUEST_BODY_BYTES_MAX;
pub const NOBODYS_BODIES_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Between which bounds an operator may set what can be set (`settings/keys.rs`).
pub const SETTABLE_BODY_BYTES: RangeInclusive<usize> = 1024..=REQUEST_BODY_BYTES_MAX;
pub const SETTABLE_HEADER_BYTES: RangeInclusive<usize> = 1024..=1024 * 1024;
pub const SETTABLE_QUERY_BYTES: RangeInclusive<usize> = 256..=64 * 1024;
pub const SETTABLE_TIMEOUT_MS: RangeInclusive<u64> = 100..=10 * 60_000;
pub const SETTABLE_CONNECTIONS: RangeInclusive<usize> = 1..=100_000;
pub const SETTABLE_REQUESTS_PER_S: RangeInclusive<usize> = 1..=1_000_000;
pub const SETTABLE_WAITING_DECISIONS: RangeInclusive<usize> = 1..=1_000_000;
pub const SETTABLE_RETENTION_MS: RangeInclusive<u64> = 3_600_000..=36_500 * 86_400_000;
pub const SETTABLE_ROTATE_BYTES: RangeInclusive<usize> = 64 * 1024..=1024 * 1024 * 1024;
pub const SETTABLE_KEPT_FILES: RangeInclusive<usize> = 1..=1_000;
pub const SETTABLE_EVIDENCE_BYTES: RangeInclusive<usize> = 1..=REQUEST_BODY_BYTES_MAX;
pub const SETTABLE_EVIDENCE_LEVELS: RangeInclusive<usize> = 1..=127;
pub const SETTABLE_EVIDENCE_ITEMS: RangeInclusive<usize> = 1..=1_000_000;
pub const SETTABLE_APPROVAL_WAIT_MS: RangeInclusive<u64> = 10_000..=7 * 86_400_000;
pub const SETTABLE_RUNS: RangeInclusive<usize> = 1..=1_000;
pub const SETTABLE_CANARY_DEADLINE_MS: RangeInclusive<u64> = 10_000..=7 * 86_400_000;
pub const SETTABLE_PROBE_MS: RangeInclusive<u64> = 100..=5_000;
pub const SETTABLE_PUSH_RETRY_MS: RangeInclusive<u64> = 1_000..=7 * 86_400_000;
pub const SETTABLE_AI_REQUESTS: RangeInclusive<usize> = 1..=1_000;

/// Items of a setting that is a list, and characters of one that is a name or a secret.
pub const SETTING_LIST_MAX: usize = 64;
pub const SETTING_TEXT_CHARS_MAX: usize = 128;
pub const SETTING_SECRET_CHARS_MAX: usize = 4 * 1024;
/// Tokens in a roster, what their file may weigh, and the faults in it that one reading names.
pub const TOKENS_MAX: usize = 10_000;
pub const TOKENS_FILE: Bounds = Bounds { bytes_max: 16 * 1024 * 1024, levels_max: 8 };
pub const TOKENS_FAULTS_MAX: usize = 100;

/// A session in a browser: how long it lasts unused and at most, how many there are in all and of one token, and how
/// long a link to a new one holds.
pub const SESSION_IDLE_S: i64 = 30 * 60;
pub const SESSION_S: i64 = 8 * 3_600;
pub const SESSIONS_MAX: usize = 1_000;
pub const SESSIONS_OF_ONE_TOKEN_MAX: usize = 16;
pub const SESSION_LINK_S: i64 = 120;

/// A form of the console as it is sent; what an overview looks back on, and what it lists; characters of a value that
/// are shown at first, and members of a TaskSpec that are; children of a handoff that are listed.
pub const CONSOLE_FORM_BYTES_MAX: usize = 64 * 1024;
/// An end that is nearer than this is counted down.
pub const CONSOLE_COUNTDOWN_S: i64 = 30 * 60;
pub const CONSOLE_CHART_MINUTES: i64 = 60;
pub const CONSOLE_CODES_S: i64 = 24 * 3_600;
pub const CONSOLE_CODES_LISTED: usize = 8;
pub const CONSOLE_REFUSED_LISTED: usize = 8;
pub const CONSOLE_VALUE_CHARS: usize = 160;
pub const CONSOLE_TREE_LINES_MAX: usize = 4_000;
pub const CONSOLE_CHILDREN_LISTED: usize = 50;
pub const CONSOLE_BLOCKED_LISTED: usize = 20;
/// A place in the console as an address that a login leads back to.
pub const CONSOLE_PLACE_BYTES_MAX: usize = 6 * 1024;
/// What an address remembers of the way back through a list.
pub const CONSOLE_TRAIL_BYTES: usize = 2 * 1024;

/// A start that failed with less room than this failed for want of it.
pub const START_ROOM_BYTES_MIN: u64 = 4 * 1024 * 1024;

/// How long a browser is watched that is being started: one that fails, fails soon.
pub const BROWSER_START_MS: u64 = 3_000;

/// How often a stream of the console looks whether its session still holds.
pub const CONSOLE_LOOK_MS: u64 = 1_000;

/// A file with one token in it.
pub const TOKEN_FILE_BYTES_MAX: usize = 1024;

/// Nonces of signed requests that are remembered, and those of one key among them: about 2,000 requests a
/// second, each remembered for two minutes.
pub const NONCES_MAX: usize = 1_000_000;
pub const NONCES_OF_ONE_KEY_MAX: usize = 250_000;

/// How far ahead it is written up to which timestamps signed requests may have been taken: after a crash a caller is refused
/// for so long, and while it signs all the time a file is written this often.
pub const SIGNED_UNTIL_AHEAD_S: i64 = 2;

/// A certificate that ends sooner than this, or in less than a third of its own time, is one to renew.
pub const CERTIFICATE_SOON_S: i64 = 14 * 24 * 3_600;

/// Claims of one kind that stay in memory although the views have them; and those that may be there in all, before
/// nothing more is decided: only views that cannot be written are that far behind.
pub const CLAIMS_AT_HAND: usize = 10_000;
pub const CLAIMS_IN_MEMORY_MAX: usize = 50_000;

/// Decisions that were read back from the ledger and are kept at hand.
pub const DECISIONS_READ_BACK: u64 = 1_000;

/// What the filter of claims spends on a name, and the fewest names that it has room for.
pub const CLAIM_FILTER_BITS: usize = 16;
pub const CLAIM_FILTER_NAMES_MIN: usize = 64 * 1024;

/// A snapshot of the state is kept after so many entries and when the gateway stops, unless it is larger than this.
pub const SNAPSHOT_ENTRIES: u64 = 50_000;
pub const SNAPSHOT_BYTES_PER_ENTRY: u64 = 128;
pub const SNAPSHOT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a start may take from one word to the service manager to the next: a full segment, or some entries for the views.
pub const START_STEP_MS: u64 = 60_000;

/// What is kept of full segments between two starts: some hundred thousand of them.
pub const SEALS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Entries that the views may be behind before the writer waits for them.
pub const VIEW_ENTRIES_BEHIND_MAX: u64 = 30_000;

/// Artifacts of one task stream: as many as a completion can name.
pub const STREAM_ARTIFACTS_MAX: usize = 100;

/// Events in one handoff's stream; the one that ends it may still come after.
pub const STREAM_EVENTS_MAX: u64 = 1_000;

/// How long a claimed handoff may be silent, in seconds.
pub const LEASE_S: i64 = 15 * 60;

/// How long the state file shows a handoff that has ended, in seconds of the ledger's time.
pub const ENDED_SHOWN_S: i64 = 10 * 60;

/// How often the sequencer looks for what is due while nothing else happens, in milliseconds.
pub const TICK_MS: u64 = 250;

/// Handoffs that are looked at in one go.
pub const TICK_LOOKS_MAX: usize = 64;

/// What a file of events may weigh when it is read as a whole.
pub const WIRE_FILE: Bounds = Bounds { bytes_max: 1024 * 1024 * 1024, levels_max: 68 };

/// How long the command line waits for a connection and for an answer, and what an answer may weigh.
pub const CLIENT_CONNECT_S: u64 = 5;
pub const CLIENT_REQUEST_S: u64 = 60;

/// How long one request of the command line waits for a person; a longer wait is several requests.
pub const CLIENT_WAIT_S: u64 = 30;
pub const CLIENT_ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often the command line asks again when an answer was lost or the gateway is busy, and how long it waits in
/// between, at least and at most.
pub const CLIENT_TRIES_MAX: u32 = 5;
pub const CLIENT_RETRY_MS: u64 = 200;
pub const CLIENT_RETRY_WAIT_MS_MAX: u64 = 10_000;

/// TaskSpecs, and their bytes together, that the command line sends in one request.
pub const CLIENT_BATCH_HANDOFFS_MAX: usize = 100;
pub const CLIENT_BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Decisions whose reasons are written out for people; of more there is the table.
pub const CLIENT_EXPLAINED_MAX: usize = 10;

/// What `doctor` finds worth a word: keys that end soon, and how little room is little, and too little.
pub const DOCTOR_KEY_ENDS_S: i64 = 30 * 86_400;
pub const DOCTOR_ROOM_BYTES: u64 = 1024 * 1024 * 1024;
pub const DOCTOR_ROOM_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// What promotion asks for unless an operator sets it: simulated handoffs for G2, live ones in canary, how long each
/// of those may be silent, and how long G1 waits for an answer.
pub const SIMULATED_RUNS: usize = 3;
pub const CANARY_RUNS: usize = 5;
pub const CANARY_DEADLINE_S: i64 = 15 * 60;
pub const GATE_PROBE_MS: u64 = 2_000;

/// How often a gate is looked at again when a handoff on its route ends meanwhile; how many handoffs G0 looks at; and how
/// many entries are looked at for somebody who only wants to see what is missing.
pub const GATE_TRIES_MAX: usize = 3;
pub const GATE_HANDOFFS_MAX: usize = 100;
pub const GATE_GLANCE_ENTRIES: usize = 2_000;

/// What a gate says is missing at once, ledger entries that it is said to rest on, pieces of evidence that a route keeps for G3, and handoffs that a
/// rollback lists by name.
pub const GATE_MISSING_MAX: usize = 20;
pub const GATE_EVIDENCE_MAX: usize = 100;
pub const ROUTE_EVIDENCE_MAX: usize = 64;
pub const ROLLED_BACK_LISTED_MAX: usize = 24;

/// Characters of free text in an event.
pub const EVENT_TEXT_CHARS_MAX: usize = 500;
/// How long a connection to the ledger's database may take, a statement on the server, and its answer; how long a commit
/// may take, which may wait for a standby; and how long it is tried to find out what became of one.
pub const PG_CONNECT_MS: u64 = 5_000;
pub const PG_STATEMENT_MS: u64 = 10_000;
pub const PG_ANSWER_MS: u64 = 15_000;
pub const PG_COMMIT_MS: u64 = 30_000;
pub const PG_SETTLE_MS: u64 = 30_000;

/// How long a gateway that was stopped in the middle of a transaction may hold up the others; less than a statement may
/// take, so that they outlast it.
pub const PG_IDLE_IN_TRANSACTION_MS: u64 = 2_000;

/// How often a silent connection is tested, it is tried again, a follower looks unasked, and a standby is to take a write.
pub const PG_KEEPALIVE_MS: u64 = 10_000;
pub const PG_RETRY_MS: u64 = 100;
pub const PG_POLL_MS: u64 = 250;
pub const PG_PROVE_MS: u64 = 1_500;
/// How often it is looked, every [`PG_RETRY_MS`], whether connections that were closed are gone.
pub const PG_LEAVING_LOOKS: u32 = 10;

/// How long more are waited for before a batch is sent to a shared ledger, at most, while others have just been answered.
pub const GATHER_US_MAX: u64 = 10_000;

/// Entries read at once from a database, rows deleted at once, and connections that are kept for the next question.
pub const PG_READ_ENTRIES: u64 = 1_000;
/// Looks whose entries were not taken in yet; there is no other before they are.
pub const PG_LOOKS_UNTAKEN_MAX: usize = 8;
pub const PG_PURGE_ROWS: u64 = 10_000;
pub const PG_ASKING_LINKS_MAX: usize = 4;

/// Nonces that are written to a database at once; how long they are kept there in seconds, which is longer than any clock
/// lets a request pass, and how often old ones are dropped.
pub const PG_NONCES_AT_ONCE_MAX: usize = 1_000;
pub const PG_NONCES_KEPT_S: u64 = 10 * 60;
pub const PG_NONCES_DROPPED_S: u64 = 30;

/// What a move of a ledger gathers before it is written.
pub const MOVE_BYTES: usize = 1024 * 1024;

/// What a JSON-RPC body may weigh: a TaskSpec in a message, or several; and how many requests one body holds.
pub const A2A_BODY: Bounds = Bounds { bytes_max: 1024 * 1024, levels_max: 72 };
pub const A2A_BATCH_MAX: usize = 100;

/// Parts of an A2A message, tasks that it refers to, and characters of an id and of an address in it.
pub const A2A_PARTS_MAX: usize = 32;
pub const A2A_REFERENCES_MAX: usize = 32;
pub const A2A_ID_CHARS_MAX: usize = 128;
pub const A2A_URL_CHARS_MAX: usize = 2_048;

/// How long the messages of one request wait for their tasks to get somewhere, at most, and how often a stream says that it
/// is still there: clients give up after 5 seconds of silence.
pub const A2A_WAIT_S: u64 = 4;
pub const A2A_HEARTBEAT_S: u64 = 2;

/// Events of one A2A stream that wait for its reader.
pub const A2A_STREAM_EVENTS: usize = 4;

/// Messages that a task shows of what was said in it.
pub const A2A_HISTORY_MAX: usize = 100;

/// Tasks on one page of `ListTasks`.
pub const A2A_PAGE_TASKS: RangeInclusive<i64> = 1..=100;

/// A request that the gateway makes: how many of a host's addresses are tried, how long connecting to one may take, and
/// what the headers of the answer may weigh.
pub const WEB_ADDRESSES_MAX: usize = 4;
pub const WEB_CONNECT_MS: u64 = 5_000;
pub const WEB_HEADERS_BYTES_MAX: usize = 64 * 1024;

/// Names that are looked up at once; each holds a thread until it is over.
pub const WEB_LOOK_UPS_MAX: usize = 32;

/// Push configs of one task, of one owner, and of all; characters of a token or credentials in one; and what the document
/// with a task's configs may weigh.
pub const PUSH_CONFIGS_OF_TASK_MAX: usize = 10;
pub const PUSH_CONFIGS_OF_OWNER_MAX: usize = 2_000;
pub const PUSH_CONFIGS_MAX: usize = 10_000;
pub const PUSH_SECRET_BYTES_MAX: usize = 4 * 1024;
pub const PUSH_DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// How long a config is shown after its telling has ended, in seconds.
pub const PUSH_ENDED_SHOWN_S: i64 = 24 * 60 * 60;

/// How often it is written down how far telling has come; what was told since may be told again after a crash.
pub const PUSH_PROGRESS_MS: u64 = 1_000;

/// What a gateway that shares its ledger tells is left to it for as long as a notification may take, and so much longer; how
/// many configs it takes at once from one that is gone; and how often what ended long ago is looked for, in such steps.
pub const PUSH_LEASE_MORE_MS: u64 = 5_000;
pub const PUSH_TAKEN_AT_ONCE_MAX: usize = 500;
pub const PUSH_FORGET_EVERY: u64 = 60;

/// Notifications under way at once, of all owners and of one; and updates that are read at once for a config.
pub const PUSH_AT_ONCE_MAX: usize = 64;
pub const PUSH_AT_ONCE_OF_OWNER_MAX: usize = 16;
pub const PUSH_UPDATES_AT_ONCE: usize = 8;

/// Tasks that are read at once for those who are to be told: requests of others are read, too.
pub const PUSH_READS_AT_ONCE: usize = 4;

/// How long one notification may take, and how long it is tried again, unless an operator sets it; how long the pause
/// between two tries is at first, and at most.
pub const PUSH_TIMEOUT_MS: u64 = 10_000;
pub const PUSH_RETRY_MS: u64 = 15 * 60_000;
pub const PUSH_PAUSE_MS: u64 = 500;
pub const PUSH_PAUSE_MS_MAX: u64 = 60_000;

/// How long nothing must have happened before it is looked whether anybody is to be told at all, in seconds.
pub const PUSH_QUIET_S: u64 = 5;

/// How long a notification's signature holds, in seconds.
pub const PUSH_SIGNATURE_S: i64 = 5 * 60;

/// The model gateway, unless an operator sets it: how long an answer may take, what it may weigh, and how many requests
/// are under way at once.
pub const AI_TIMEOUT_MS: u64 = 60_000;
pub const AI_ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
pub const AI_REQUESTS_MAX: usize = 32;

/// What an event of an A2A stream may weigh to be read, and how long a stream may be silent before it is resumed. Servers
/// that are alive say so every few seconds.
pub const A2A_EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
pub const A2A_SILENCE_S: u64 = 30;
