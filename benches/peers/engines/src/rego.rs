//! regorus: the rules are data, the TaskSpec is the input, the answer is a set of codes.

use std::cell::RefCell;
use std::sync::Arc;

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::program::Program;
use regorus::rvm::vm::RegoVM;
use regorus::{Engine, Rc, Value};

use crate::{Fault, Opinion, Rules};

const POLICY: &str = include_str!("../policy.rego");
const ENTRY: &str = "data.handoff.codes";

/// The policy compiled for regorus's virtual machine, which is its fastest way.
pub(crate) struct Gate {
    program: Arc<Program>,
    data: Value,
}

thread_local! {
    /// A machine for each thread, which keeps what it has allocated.
    static MACHINE: RefCell<Option<RegoVM>> = const { RefCell::new(None) };
}

impl Gate {
    pub(crate) fn new(rules: &Rules) -> Result<Self, Fault> {
        let data = serde_json::json!({"routes": rules.routes, "delegation": rules.delegation});
        let data = Value::from_json_str(&data.to_string())?;
        let mut engine = Engine::new();
        engine.add_policy("policy.rego".to_owned(), POLICY.to_owned())?;
        engine.add_data(data.clone())?;
        let compiled = engine.compile_with_entrypoint(&Rc::from(ENTRY))?;
        Ok(Self { program: Compiler::compile_from_policy(&compiled, &[ENTRY])?, data })
    }

    pub(crate) fn judge(&self, body: &[u8]) -> Result<Opinion, Fault> {
        let spec: Value = serde_json::from_slice(body)?;
        let handoff_id = spec["handoffId"].as_string()?.as_ref().to_owned();
        MACHINE.with_borrow_mut(|machine| {
            if machine.is_none() {
                let mut new = RegoVM::new();
                new.load_program(self.program.clone());
                new.set_data(self.data.clone())?;
                *machine = Some(new);
            }
            let machine = machine.as_mut().ok_or("there is a machine")?;
            machine.set_input(spec);
            let codes = machine.execute()?;
            let codes = codes.as_set()?.iter().map(|code| Ok(code.as_string()?.as_ref().to_owned()));
            Ok(Opinion { handoff_id, codes: codes.collect::<Result<_, Fault>>()? })
        })
    }
}
