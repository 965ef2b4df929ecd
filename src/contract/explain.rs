//! A compiled JSON Schema, and its errors in sentences.
//!
//! One translation for TaskSpecs, operation inputs and policy files: each error becomes a pointer to what
//! is wrong, a sentence, and as a hint the `description` that the schema gives to that member.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value as Json;

use super::instance::{Instance, Tree};
use crate::json::pointer;
use crate::limits;
use crate::timestamp::Timestamp;

/// A schema that is ready to be used.
#[derive(Debug)]
pub struct Compiled {
    validator: Validator<Tree>,
    schema: Json,
}

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// JSON pointer of what is wrong; of a missing member, where it would stand.
    pub pointer: String,
    pub message: String,
    pub hint: Option<String>,
    /// Where in the schema the broken constraint stands.
    pub(super) schema_path: String,
}

impl Finding {
    /// Something that no schema can say.
    pub(crate) fn new(
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (pointer, message, hint) = (pointer.into(), message.into(), Some(hint.into()));
        Self { pointer, message, hint, schema_path: String::new() }
    }

    /// Where in the schema the broken constraint stands.
    pub(crate) fn schema_path(&self) -> &str {
        &self.schema_path
    }
}

/// A pattern beside a format says for other people's validators what the format's name says to people.
fn keep_the_words(findings: &mut Vec<Finding>) {
    let in_words: Vec<(String, String)> = findings
        .iter()
        .filter_map(|finding| {
            let place = finding.schema_path.strip_suffix("/format")?;
            Some((finding.pointer.clone(), place.to_owned()))
        })
        .collect();
    findings.retain(|finding| {
        !finding.schema_path.strip_suffix("/pattern").is_some_and(|place| {
            in_words.iter().any(|(pointer, words)| *pointer == finding.pointer && words == place)
        })
    });
}

impl Compiled {
    /// Compiles a schema. Nothing is fetched: one that refers to another document is refused, and so is a
    /// pattern that needs backtracking, for an input could make it run for ever.
    pub fn new(schema: Json) -> Result<Self, String> {
        let validator = jsonschema::options_for::<Tree>()
            .with_pattern_options(PatternOptions::regex())
            .with_format("date-time", |text| Timestamp::parse(text).is_some())
            .should_validate_formats(true)
            .offline()
            .build(&schema)
            .map_err(|error| error.to_string())?;
        Ok(Self { validator, schema })
    }

    pub fn is_valid(&self, instance: Instance<'_>) -> bool {
        self.validator.is_valid(instance)
    }

    /// Everything that is wrong, in the order of the document's pointers; at most
    /// [`limits::SCHEMA_REASONS_MAX`] findings.
    pub fn findings(&self, instance: Instance<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for error in self.validator.iter_errors(instance) {
            self.explain(&error, &mut findings);
            if findings.len() >= limits::SCHEMA_REASONS_MAX {
                findings.truncate(limits::SCHEMA_REASONS_MAX);
                break;
            }
        }
        findings.sort_by(|a, b| a.pointer.cmp(&b.pointer).then_with(|| a.message.cmp(&b.message)));
        findings.dedup_by(|a, b| a.pointer == b.pointer && a.message == b.message);
        keep_the_words(&mut findings);
        findings
    }

    fn explain(&self, error: &ValidationError<'_>, findings: &mut Vec<Finding>) {
        let at = error.instance_path().as_str();
        let schema_path = error.schema_path().as_str();
        let mut push = |pointer: String, message: String| {
            let hint = self.description(schema_path, error.evaluation_path().as_str());
            findings.push(Finding { pointer, message, hint, schema_path: schema_path.to_owned() });
        };
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let pointer = pointer::join(at, name);
                let message = format!("`{name}` is missing");
                let hint = self.member_description(schema_path, error.evaluation_path().as_str(), name);
                findings.push(Finding { pointer, message, hint, schema_path: schema_path.to_owned() });
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                // A body can have as many as it has bytes; nobody reads beyond the bound, and each costs a comparison
                // with every name there is.
                let room = limits::SCHEMA_REASONS_MAX.saturating_sub(findings.len());
                for name in unexpected.iter().take(room) {
                    let hint = self.similar_member(schema_path, name);
                    let shown = crate::json::printable(name);
                    findings.push(Finding {
                        pointer: pointer::join(at, name),
                        message: format!("`{shown}` is not a member of {}", place(at)),
                        hint,
                        schema_path: schema_path.to_owned(),
                    });
                }
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                push(at.to_owned(), format!("{} fits none of the forms it may have", subject(at)));
                // The form that comes closest says the most.
                if let Some(branch) = context.iter().min_by_key(|branch| branch.len()) {
                    for nested in branch {
                        self.explain(nested, findings);
                    }
                }
            }
            ValidationErrorKind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default();
                let what = format!("the name `{}`", crate::json::printable(name));
                push(pointer::join(at, name), sentence(&what, error.kind(), error.instance()));
            }
            kind => push(at.to_owned(), sentence(&subject(at), kind, error.instance())),
        }
    }

    /// The `description` nearest to the broken constraint, seen from where it was referred to first.
    fn description(&self, schema_path: &str, evaluation_path: &str) -> Option<String> {
        self.nearest(evaluation_path).or_else(|| self.nearest(schema_path))
    }

    /// Walks a keyword location up to the nearest schema with a description, not as far as the root's.
    fn nearest(&self, path: &str) -> Option<String> {
        let mut path = path;
        while let Some(cut) = path.rfind('/') {
            path = path.get(..cut)?;
            let schema = self.schema_at(path);
            if let Some(description) = schema.and_then(|schema| schema.get("description")?.as_str())
                && !path.is_empty()
            {
                return Some(description.to_owned());
            }
            // Beyond a member's own constraints its container's description would only mislead, unless they
            // come from a condition, which says itself what it is about.
            let parent = path.rsplit('/').nth(1);
            let conditional = path.contains("/then/") || path.contains("/else/");
            if matches!(parent, Some("properties" | "$defs")) && !conditional {
                return None;
            }
        }
        None
    }

    /// The schema at a keyword location; a `$ref` on the way leads to what it names.
    fn schema_at(&self, path: &str) -> Option<&Json> {
        let mut schema = &self.schema;
        for segment in pointer::segments(path) {
            if segment == "$ref" {
                let target = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
                schema = self.schema.pointer(target)?;
            } else {
                schema = match schema {
                    Json::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
                    other => other.get(&segment)?,
                };
            }
        }
        Some(schema)
    }

    /// The description of a member that is missing: of the block that demands it, or of the schema that
    /// describes it at the same place.
    fn member_description(&self, schema_path: &str, evaluation_path: &str, name: &str) -> Option<String> {
        let block = |path: &str| {
            let schema = self.schema_at(path.strip_suffix("/required")?)?;
            Some(schema.get("properties")?.get(name)?.get("description")?.as_str()?.to_owned())
        };
        block(evaluation_path).or_else(|| block(schema_path)).or_else(|| self.nearest(schema_path))
    }

    fn similar_member(&self, schema_path: &str, name: &str) -> Option<String> {
        let (block, _) = schema_path.rsplit_once('/')?;
        let members = self.schema_at(block)?.get("properties")?.as_object()?;
        let best = members.keys().map(|member| (distance(member, name), member)).min()?;
        match best {
            (apart, member) if apart <= 2 || member.eq_ignore_ascii_case(name) => {
                Some(format!("did you mean `{member}`?"))
            }
            _ if members.is_empty() => Some("it takes no members".to_owned()),
            _ => {
                let names: Vec<_> = members.keys().map(|member| format!("`{member}`")).collect();
                Some(format!("it may have {}", names.join(", ")))
            }
        }
    }
}

/// What a sentence is about: the member's name, or the document.
fn subject(at: &str) -> String {
    match at.rsplit('/').next() {
        None | Some("") => "the document".to_owned(),
        Some(item) if item.bytes().all(|byte| byte.is_ascii_digit()) => {
            let list = at.rsplit('/').nth(1).unwrap_or_default();
            format!("item {item} of `{list}`")
        }
        Some(name) => format!("`{}`", crate::json::printable(&name.replace("~1", "/").replace("~0", "~"))),
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { "the document".to_owned() } else { subject(at) }
}

fn sentence(what: &str, kind: &ValidationErrorKind, instance: &Json) -> String {
    let found = || shown(instance);
    match kind {
        ValidationErrorKind::Type { kind } => {
            let types: Vec<String> = match kind {
                TypeKind::Single(one) => vec![with_article(&one.to_string())],
                TypeKind::Multiple(several) => {
                    several.iter().map(|one| with_article(&one.to_string())).collect()
                }
            };
            format!("{what} must be {}, not {}", types.join(" or "), found())
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().map(shown).collect();
            format!("{what} must be one of {}, not {}", options.join(", "), found())
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("{what} must be {}, not {}", shown(expected_value), found())
        }
        ValidationErrorKind::MinLength { limit } => {
            format!("{what} has {}; it needs at least {limit}", characters(instance))
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("{what} has {}; it may have at most {limit}", characters(instance))
        }
        ValidationErrorKind::Pattern { pattern } => {
            format!("{what} is {}, which does not match `{pattern}`", found())
        }
        ValidationErrorKind::Format { format } if format == "date-time" => {
            format!("{what} is {}, which is not an RFC 3339 date-time", found())
        }
        ValidationErrorKind::Format { format } => format!("{what} is {}, which is not a {format}", found()),
        ValidationErrorKind::Minimum { limit } => format!("{what} must be at least {limit}, not {}", found()),
        ValidationErrorKind::Maximum { limit } => format!("{what} must be at most {limit}, not {}", found()),
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            format!("{what} must be more than {limit}, not {}", found())
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            format!("{what} must be less than {limit}, not {}", found())
        }
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("{what} must be a multiple of {multiple_of}, not {}", found())
        }
        ValidationErrorKind::MinItems { limit } => format!("{what} needs at least {limit} {}", items(*limit)),
        ValidationErrorKind::MaxItems { limit } => {
            format!("{what} may have at most {limit} {}", items(*limit))
        }
        ValidationErrorKind::MinProperties { limit } => {
            format!("{what} needs at least {limit} {}", members(*limit))
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("{what} may have at most {limit} {}", members(*limit))
        }
        ValidationErrorKind::UniqueItems => format!("{what} has an item twice"),
        ValidationErrorKind::FalseSchema => format!("{what} may not stand here"),
        ValidationErrorKind::OneOfMultipleValid { .. } => format!("{what} fits more than one of its forms"),
        ValidationErrorKind::Contains => format!("{what} lacks an item that it must have"),
        other => format!("{what} breaks the schema's `{}`", other.keyword()),
    }
}

/// A value in a sentence: short, on one line.
fn shown(value: &Json) -> String {
    match value {
        Json::Object(_) => "an object".to_owned(),
        Json::Array(_) => "an array".to_owned(),
        Json::String(text) if text.is_empty() => "an empty string".to_owned(),
        Json::String(text) => format!("`{}`", crate::json::printable(text)),
        other => format!("`{other}`"),
    }
}

fn with_article(noun: &str) -> String {
    match noun {
        "null" => "null".to_owned(),
        "object" | "array" | "integer" => format!("an {noun}"),
        _ => format!("a {noun}"),
    }
}

fn characters(value: &Json) -> String {
    match value.as_str().map_or(0, |text| text.chars().count()) {
        1 => "1 character".to_owned(),
        count => format!("{count} characters"),
    }
}

fn items(count: u64) -> &'static str {
    if count == 1 { "item" } else { "items" }
}

fn members(count: u64) -> &'static str {
    if count == 1 { "member" } else { "members" }
}

/// How many letters must change, at most; enough to catch a slip of the hand.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    const CHARS_MAX: usize = 64;
    let b: Vec<char> = b.chars().take(CHARS_MAX).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(CHARS_MAX).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            let cost = usize::from(x != *y);
            left = (left + 1).min(above + 1).min(diagonal + cost);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
