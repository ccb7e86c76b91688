//! The classes of Python that are made here, exceptions and data classes, and the functions that
//! are called. All are had when this
//! module is imported: while the interpreter ends, nothing can be imported any more, and what is
//! raised then would be a panic of pyo3's.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

macro_rules! classes {
    ($($module:literal: $($class:ident)+;)+) => {
        #[expect(non_snake_case, reason = "they have the names of the classes")]
        pub(crate) struct Classes {
            $($(pub(crate) $class: Py<PyAny>,)+)+
        }

        impl Classes {
            fn import(py: Python<'_>) -> PyResult<Self> {
                Ok(Self {
                    $($($class: py.import($module)?.getattr(stringify!($class))?.unbind(),)+)+
                })
            }
        }
    };
}

classes! {
    "datetime": datetime timezone;
    "redlatch._errors": RedlatchError ConfigError NoQuorum LockLost Cancelled OtherProcess
        RegisterError;
    "redlatch._views": NodeReport NodeStatus Holder Waiter OwnThreads Inspection OncePerRun Value;
    "redlatch._callbacks": check_lost start_log start_lost;
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// They are there, unless this module is not imported yet.
pub(crate) fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    CLASSES.get_or_try_init(py, || Classes::import(py))
}
