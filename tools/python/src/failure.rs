//! Failures: convert errors into exceptions, by who has to act.

use arrow_schema::ArrowError;
use hamdex::{Error, Fault};
use hamdex_cli::embed::Stopped;
use pyo3::prelude::*;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(Error),
    /// A failure of the command line.
    Stopped(Stopped),
    Usage(String),
    /// The rows are unusable.
    Data(String),
    Python(PyErr),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::Data(message.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// The exit status of the command line for unusable rows.
const DATA: u8 = 3;

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::Usage(format!("Arrow data: {error}"))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let of = |fault| match fault {
            Fault::Caller => "UsageError",
            Fault::Environment => "StorageError",
            Fault::Damage => "DamageError",
        };
        let (class, message) = match failure {
            Failure::Python(error) => return error,
            Failure::Usage(message) => ("UsageError", message),
            Failure::Data(message) | Failure::Stopped(Stopped { status: DATA, message, .. }) => {
                ("DataError", message)
            }
            Failure::Stopped(Stopped { fault, message, .. }) => (of(fault), message),
            Failure::Library(error) => (of(error.fault()), error.to_string()),
        };
        // The classes have two bases each, which only Python can define.
        Python::attach(|py| {
            let errors = py.import("hamdex._errors");
            let class = errors.and_then(|errors| errors.getattr(class));
            match class.and_then(|class| class.call1((message,))) {
                Ok(raised) => PyErr::from_value(raised),
                Err(error) => error,
            }
        })
    }
}
