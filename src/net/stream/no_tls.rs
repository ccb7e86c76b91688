//! What stands in the place of TLS in a build without the feature `tls`: types without values.

use super::Received;
use std::io::{self, Read, Write};

/// There is none: a URL that needs TLS is refused.
#[derive(Clone, Debug)]
pub(crate) enum TlsTarget {}

/// There is none.
#[derive(Debug)]
pub(in crate::net) enum TlsSession {}

impl TlsSession {
    pub(in crate::net) fn new(target: &TlsTarget) -> io::Result<Self> {
        match *target {}
    }

    pub(in crate::net) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(in crate::net) fn has_decrypted(&self) -> bool {
        match *self {}
    }

    pub(in crate::net) fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub(in crate::net) fn receive(&mut self, _: &mut impl Read) -> io::Result<bool> {
        match *self {}
    }

    pub(in crate::net) fn read(
        &mut self,
        _: &mut impl Write,
        _: &mut [u8],
    ) -> io::Result<Received> {
        match *self {}
    }

    pub(in crate::net) fn write(&mut self, _: &mut impl Write, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(in crate::net) fn flush(&mut self, _: &mut impl Write) -> io::Result<()> {
        match *self {}
    }

    pub(in crate::net) fn finish(&mut self, _: &mut impl Write) {
        match *self {}
    }
}
