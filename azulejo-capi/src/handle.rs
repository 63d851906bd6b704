//! Handles: what C holds pointers to.
//!
//! A handle is a slot of two words: a tag that tells its kind, and where its value lies. Slots are
//! never given back to the allocator, so a pointer to a handle that was freed, or freed twice, or
//! of another kind, is looked at without harm and refused. A freed slot is used again only after
//! many others, so that a stale pointer does not soon mean another handle.

use crate::strings::lock;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Slots that wait at least before one is used again.
const RESERVE: usize = 1024;

/// What C holds a pointer to.
#[repr(C)]
#[derive(Debug)]
pub struct Handle<T> {
    slot: Slot,
    kind: PhantomData<AtomicPtr<T>>,
}

#[repr(C)]
#[derive(Debug)]
struct Slot {
    /// 0 while no handle uses it.
    tag: AtomicU64,
    value: AtomicPtr<()>,
}

/// A kind of handle.
pub trait Kind {
    /// The name that messages and the header use, as in `tiledb_NAME_t`.
    const NAME: &'static str;
    /// What live handles of this kind begin with.
    const TAG: u64 = tag(Self::NAME);
}

/// A number from a name (FNV-1a), never 0.
const fn tag(name: &str) -> u64 {
    let (bytes, mut hash, mut i) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325u64, 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash | 1
}

/// Slots that no handle uses, those used longest ago first.
static FREE: Mutex<VecDeque<&'static Slot>> = Mutex::new(VecDeque::new());

fn free_slot() -> &'static Slot {
    let mut free = lock(&FREE);
    while free.len() <= RESERVE {
        let slots: Vec<Slot> = (0..RESERVE)
            .map(|_| Slot {
                tag: AtomicU64::new(0),
                value: AtomicPtr::new(std::ptr::null_mut()),
            })
            .collect();
        free.extend(slots.leak().iter());
    }
    // There are more than `RESERVE`.
    free.pop_front()
        .unwrap_or_else(|| Box::leak(Box::default()))
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            tag: AtomicU64::new(0),
            value: AtomicPtr::new(std::ptr::null_mut()),
        }
    }
}

impl<T: Kind> Handle<T> {
    /// A handle that lives for ever.
    pub const fn fixed(value: &'static T) -> Self {
        let value = AtomicPtr::new(std::ptr::from_ref(value).cast_mut().cast());
        Self {
            slot: Slot {
                tag: AtomicU64::new(T::TAG),
                value,
            },
            kind: PhantomData,
        }
    }

    /// A new handle, which the caller frees.
    pub fn new(value: T) -> *mut Self {
        let slot = free_slot();
        slot.value
            .store(Box::into_raw(Box::new(value)).cast(), Ordering::Relaxed);
        slot.tag.store(T::TAG, Ordering::Release);
        // A handle is a slot and nothing else.
        std::ptr::from_ref(slot).cast_mut().cast()
    }

    /// The value of the handle at an address; `None` if there is none of this kind, or no more.
    ///
    /// # Safety
    /// The address is one that [`Self::new`] gave or of a fixed handle (any kind, freed or not), or
    /// of 8 bytes of other memory that can be read. Nobody frees the handle while the value is in
    /// use.
    pub unsafe fn value<'a>(handle: NonNull<Self>) -> Option<&'a T> {
        if !handle.is_aligned() {
            return None;
        }
        // SAFETY: handles are never unmapped, and the tag is the first word of all of them.
        let tag = unsafe { (*handle.as_ptr().cast::<AtomicU64>()).load(Ordering::Acquire) };
        if tag != T::TAG {
            return None;
        }
        // SAFETY: the tag says that it is a live handle of this kind, whose value `new` or `fixed`
        // has put there.
        unsafe {
            (*handle.as_ptr())
                .slot
                .value
                .load(Ordering::Acquire)
                .cast::<T>()
                .as_ref()
        }
    }

    /// Frees the handle at an address; whether there was one of this kind.
    ///
    /// # Safety
    /// As for [`Self::value`]; and it is no fixed handle.
    pub unsafe fn free(handle: NonNull<Self>) -> bool {
        if !handle.is_aligned() {
            return false;
        }
        // SAFETY: as in `value`.
        let tag = unsafe { &*handle.as_ptr().cast::<AtomicU64>() };
        // An exchange writes even where it fails, which memory that can only be read does not stand.
        if tag.load(Ordering::Acquire) != T::TAG {
            return false;
        }
        // Of several who free at once, one clears the tag.
        if tag
            .compare_exchange(T::TAG, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        // SAFETY: it was a live handle, and slots live for ever.
        let slot: &'static Slot = unsafe { &*handle.as_ptr().cast::<Slot>() };
        let value = slot.value.swap(std::ptr::null_mut(), Ordering::AcqRel);
        lock(&FREE).push_back(slot);
        // SAFETY: `new` made the box, and who cleared the tag is the only one to end it.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Debug)]
    struct Apple(Arc<()>);
    impl Kind for Apple {
        const NAME: &'static str = "apple";
    }
    #[derive(Debug)]
    struct Pear;
    impl Kind for Pear {
        const NAME: &'static str = "pear";
    }

    #[test]
    fn handles_are_told_apart_and_freed_once() {
        let alive = Arc::new(());
        let handle = NonNull::new(Handle::new(Apple(Arc::clone(&alive)))).unwrap();
        // SAFETY: the handle is one, of whatever kind and state.
        unsafe {
            assert!(Handle::value(handle).is_some_and(|apple| Arc::ptr_eq(&apple.0, &alive)));
            assert!(Handle::<Pear>::value(handle.cast()).is_none());
            assert!(!Handle::<Pear>::free(handle.cast()));
            assert!(Handle::free(handle));
            assert_eq!(Arc::strong_count(&alive), 1);
            assert!(Handle::value(handle).is_none());
            assert!(!Handle::free(handle));
            // The slot rests for a while.
            for _ in 0..RESERVE {
                let next = NonNull::new(Handle::new(Pear)).unwrap();
                assert_ne!(next.cast(), handle);
                assert!(Handle::free(next));
            }
        }
    }

    #[test]
    fn memory_that_can_only_be_read_is_no_handle() {
        // A constant without interior mutability lies where nothing can be written.
        static TEXT: &[u64; 2] = &[0x6f72_2d77_6f72_2d61, 0];
        let address = NonNull::from(TEXT).cast::<Handle<Pear>>();
        // SAFETY: 8 bytes that can be read.
        unsafe {
            assert!(Handle::value(address).is_none());
            assert!(!Handle::free(address));
        }
    }

    #[test]
    fn of_many_who_free_one_does() {
        for _ in 0..100 {
            let handle = Handle::new(Pear) as usize;
            let free = || {
                let handle = NonNull::new(handle as *mut Handle<Pear>).unwrap();
                // SAFETY: as above.
                usize::from(unsafe { Handle::free(handle) })
            };
            let freed = std::thread::scope(|scope| {
                let threads = [scope.spawn(free), scope.spawn(free), scope.spawn(free)];
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .sum::<usize>()
            });
            assert_eq!(freed, 1);
        }
    }
}
