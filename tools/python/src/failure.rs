//! Failures: convert errors into exceptions, by who has to act.

use arrow_schema::ArrowError;
use hamdex::{Error, Fault};
use hamdex_io::failure::{self, Status};
use pyo3::prelude::*;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A failure that the command line has too.
    Rows(failure::Failure),
    /// The rows are unusable.
    Data(String),
    Python(PyErr),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        failure::Failure::Usage(message.into()).into()
    }

    /// Returns the failure of a file that an argument names.
    pub(crate) fn of_argument(failure: failure::Failure) -> Self {
        if let failure::Failure::File { .. } = failure {
            return Self::usage(failure.to_string());
        }
        failure.into()
    }

    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::Data(message.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        failure::Failure::from(error).into()
    }
}

impl From<failure::Failure> for Failure {
    fn from(failure: failure::Failure) -> Self {
        Self::Rows(failure)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::usage(format!("Arrow data: {error}"))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let (class, message) = match failure {
            Failure::Python(error) => return error,
            Failure::Data(message) => ("DataError", message),
            Failure::Rows(failure) => {
                let library = matches!(failure, failure::Failure::Library(_));
                let class = match failure.fault() {
                    _ if !library && failure.status() == Status::Data.number() => "DataError",
                    Fault::Caller => "UsageError",
                    Fault::Environment => "StorageError",
                    Fault::Damage => "DamageError",
                };
                (class, failure.to_string())
            }
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
