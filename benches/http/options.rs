//! What is to be measured, from the arguments.

/// A service that somebody else wrote, and the shell command that starts it.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) command: String,
    /// Whether it remembers what it has decided.
    pub(crate) is_durable: bool,
}

pub(crate) struct Options {
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) connections: Vec<usize>,
    /// Of our own rows those with these names, beside the bare handler; all, where there are none.
    pub(crate) only: Vec<String>,
    pub(crate) peers: Vec<Peer>,
    /// Other builds of handoffd: a name and a program each.
    pub(crate) builds: Vec<(String, String)>,
    pub(crate) postgres: bool,
    pub(crate) stream: bool,
    pub(crate) memory: Option<usize>,
}

impl Options {
    pub(crate) fn from_arguments() -> Self {
        let mut options = Self {
            seconds: 3.0,
            rounds: 3,
            connections: vec![1, 16, 64, 256],
            only: Vec::new(),
            peers: Vec::new(),
            builds: Vec::new(),
            postgres: false,
            stream: false,
            memory: None,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
            match &*argument {
                "--rounds" => options.rounds = value().parse().unwrap(),
                "--connections" => {
                    options.connections = value().split(',').map(|number| number.parse().unwrap()).collect();
                }
                "--only" => options.only.extend(value().split(',').map(str::to_owned)),
                "--service" => options.peers.push(Peer::new(&value(), true)),
                "--engine" => options.peers.push(Peer::new(&value(), false)),
                "--build" => {
                    let value = value();
                    let (name, program) = value.split_once('=').unwrap();
                    options.builds.push((name.to_owned(), program.to_owned()));
                }
                "--postgres" => options.postgres = true,
                "--stream" => options.stream = true,
                "--json" => drop(value()),
                // What cargo says to every bench.
                "--bench" => {}
                "memory" => options.memory = Some(1_000_000),
                number if options.memory.is_some() => {
                    options.memory = Some(number.parse::<f64>().unwrap() as usize);
                }
                number => {
                    options.seconds = number.parse().unwrap_or_else(|_| panic!("{number} is no option"));
                }
            }
        }
        options
    }
}

impl Peer {
    fn new(text: &str, is_durable: bool) -> Self {
        let (name, command) = text.split_once('=').unwrap_or_else(|| panic!("{text} is not NAME=COMMAND"));
        Self { name: name.to_owned(), command: command.to_owned(), is_durable }
    }
}
