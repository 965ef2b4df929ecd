//! Is an answer what `/openapi.json` says it can be?

use std::collections::HashMap;
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
        if reply.body.is_empty() && answer["content"] == json!({}) {
            return;
        }
        let content = &answer["content"][&kind];
        assert!(content.is_object(), "{kind} is not documented: {request:?} -> {reply:?}");
        if let Some(schema) = content["schema"]["$ref"].as_str() {
            self.validate(schema.trim_start_matches("#/components/schemas/"), &reply.json());
        }
    }

    fn validate(&self, schema: &str, value: &Json) {
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

/// Is this a path of that template?
fn is_of(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(form, part)| form == part || form.starts_with('{'))
}
