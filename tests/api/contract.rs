//! Is an answer what `/openapi.json` says it can be?
//!
//! `UPDATE=1 cargo test --test api` also keeps the first answer of each kind in `src/http/answers.json`, where the document
//! has none of it: its examples, those of refusals and problems too. One whose shape is no longer right is taken out of that file by hand, and made again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use serde_json::{Value as Json, json};

use super::wire::{Reply, Request};

/// The document, and the validators that were made from it.
pub(crate) struct Contract {
    pub(crate) document: Json,
    validators: Mutex<HashMap<String, jsonschema::Validator>>,
}

impl Contract {
    pub(crate) fn of(document: Json) -> Self {
        assert_eq!(document["openapi"], "3.1.0");
        Self { document, validators: Mutex::default() }
    }

    /// Every operation: its path, its method in capitals, and what is said of it.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, String, &Json)> {
        self.document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(|(method, operation)| (path.as_str(), method.to_ascii_uppercase(), operation))
        })
    }

    /// Fails the test if the answer is none that the document speaks of. Paths and methods that are not in it are
    /// answered with problems.
    pub(crate) fn check(&self, request: &Request, reply: &Reply) {
        let path = request.target.split('?').next().unwrap();
        // A path that is written out is none with parameters, whatever the method.
        let is_written_out = self.document["paths"].get(path).is_some();
        let is_meant = |template: &str| if is_written_out { template == path } else { is_of(template, path) };
        let found =
            self.operations().find(|(template, method, _)| is_meant(template) && *method == request.method);
        let kind = reply.header("content-type").unwrap_or_default().split(';').next().unwrap().to_owned();
        let Some((.., operation)) = found else {
            assert!(matches!(reply.status, 404 | 405), "{request:?} -> {reply:?}");
            assert_eq!(kind, "application/problem+json");
            return self.validate("Problem", &reply.json());
        };
        let answer = &operation["responses"][reply.status.to_string()];
        assert!(answer.is_object(), "status {} is not documented: {request:?} -> {reply:?}", reply.status);
        for (name, header) in answer["headers"].as_object().into_iter().flatten() {
            let is_there = reply.header(name).is_some_and(|value| {
                header["schema"]["type"] != "integer" || value.parse::<u32>().is_ok_and(|value| value > 0)
            });
            assert!(is_there, "{name} is documented: {request:?} -> {reply:?}");
        }
        if reply.body.is_empty() && answer["content"] == json!({}) {
            return;
        }
        let content = &answer["content"][&kind];
        assert!(content.is_object(), "{kind} is not documented: {request:?} -> {reply:?}");
        if let Some(schema) = content["schema"]["$ref"].as_str() {
            self.validate(schema.trim_start_matches("#/components/schemas/"), &reply.json());
            if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
                self.keep_what_is_missing(operation["operationId"].as_str().unwrap(), content, reply);
            }
        }
    }

    /// Keeps an answer of which the document has none. A problem is told in the same way by all.
    fn keep_what_is_missing(&self, operation: &str, content: &Json, reply: &Reply) {
        if self.example_of(content).is_null() {
            keep_example(if is_problem(content) { "anyOperation" } else { operation }, reply);
        }
    }

    /// The example of an answer, its own or one of all endpoints.
    fn example_of<'d>(&'d self, content: &'d Json) -> &'d Json {
        match content["examples"]["problem"]["$ref"].as_str() {
            Some(place) => {
                &self.document["components"]["examples"][place.rsplit('/').next().unwrap()]["value"]
            }
            None => &content["example"],
        }
    }

    /// Every answer in JSON, problems too: the operation's id and the status, the schema and the example.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (String, &str, &Json)> {
        self.operations().flat_map(move |(_, _, operation)| {
            let id = operation["operationId"].as_str().unwrap();
            operation["responses"].as_object().unwrap().iter().flat_map(move |(status, answer)| {
                let contents = answer["content"].as_object().into_iter().flatten();
                contents.filter_map(move |(kind, content)| {
                    let schema =
                        content["schema"]["$ref"].as_str()?.trim_start_matches("#/components/schemas/");
                    Some((format!("{id} {status} {kind}"), schema, self.example_of(content)))
                })
            })
        })
    }

    pub(crate) fn validate(&self, schema: &str, value: &Json) {
        let mut validators = self.validators.lock().unwrap();
        let validator = validators.entry(schema.to_owned()).or_insert_with(|| {
            let whole = json!({
                "$ref": format!("#/components/schemas/{schema}"),
                "components": self.document["components"],
            });
            jsonschema::draft202012::new(&whole).unwrap()
        });
        if let Err(error) = validator.validate(value) {
            panic!("not a {schema}: {error}, at {}: {value}", error.instance_path());
        }
    }
}

/// Keeps an answer as an example, if it is small and there is none yet. Tests run beside each other, also as processes.
fn keep_example(operation: &str, reply: &Reply) {
    const BYTES_MAX: usize = 8 * 1024;
    let text = reply.text();
    let is_local = text.contains(std::env::temp_dir().to_str().unwrap());
    // What a test has planted to find it nowhere is no example of anything.
    let is_planted = text.contains("canary");
    if reply.body.len() > BYTES_MAX || is_local || is_planted || !is_telling(reply) {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/answers.json");
    let turn = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    turn.lock().unwrap();
    let mut all: BTreeMap<String, BTreeMap<String, Json>> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let of = all.entry(operation.to_owned()).or_default();
    of.entry(reply.status.to_string()).or_insert_with(|| reply.json());
    let mut text = serde_json::to_string_pretty(&all).unwrap();
    text.push('\n');
    super::harness::write(std::path::Path::new(path), text);
}

fn is_problem(content: &Json) -> bool {
    content["schema"]["$ref"] == "#/components/schemas/Problem"
}

/// Does an answer show what there is to it? Where all may be well, a refusal and an empty list do not.
fn is_telling(reply: &Reply) -> bool {
    if reply.status >= 400 {
        return true;
    }
    let answer = &reply.json();
    let members = answer.as_object().map_or(0, serde_json::Map::len);
    let is_empty = |list: &Json| list.as_array().is_some_and(Vec::is_empty);
    let is_empty_list =
        members <= 3 && answer.as_object().is_some_and(|members| members.values().any(is_empty));
    let decision = answer.get("decision").or_else(|| answer.pointer("/decisions/0/decision"));
    !is_empty_list && answer.get("error").is_none() && decision.is_none_or(|decision| decision != "denied")
}

/// Is this a path of that template?
fn is_of(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(form, part)| form == part || form.starts_with('{'))
}
