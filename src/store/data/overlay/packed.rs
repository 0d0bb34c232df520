//! Packs alone: what a cursor finds in them without the overlay.

use super::{At, Beneath, Entries};
use crate::error::Result;
use crate::store::bytes::pack::Member;
use crate::store::{Family, engine_error};

impl<'a> Beneath<'a> {
    /// Returns whether the overlay says nothing of keys that begin with `prefix`.
    ///
    /// Leaves the cursor at no entry.
    pub(in crate::store::data) fn hold_alone(
        overlay: &mut Entries<'a>,
        family: Family,
        prefix: &[u8],
    ) -> Result<bool> {
        overlay.seek(prefix);
        if let Some(key) = overlay.key() {
            return Ok(!key.starts_with(prefix));
        }
        overlay.status().map_err(|e| engine_error(&family.to_string(), e))?;
        Ok(true)
    }

    /// Calls `visit` with each member of packs from a key on, until it returns false.
    ///
    /// Leaves the cursor at no entry.
    pub(in crate::store::data) fn each_member(
        &mut self,
        from: &[u8],
        mut visit: impl FnMut(Member) -> bool,
    ) -> Result<()> {
        let base = &mut self.base;
        base.seek(from);
        loop {
            match base.at {
                At::Damaged(_) => return Err(base.damage()),
                At::End => return base.status(),
                At::Member(left) => {
                    let member = left.checked_sub(1).and_then(|at| base.members.get(at));
                    let member = *member.expect("the cursor is at a member");
                    if !visit(member) {
                        return Ok(());
                    }
                    base.next();
                }
            }
        }
    }
}
