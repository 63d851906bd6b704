//! Exceptions that C++ callbacks throw: callers see an error with the exception's message, as with
//! the reference.
//!
//! Rust cannot catch what it did not throw, and public headers declare every function `noexcept`,
//! so an exception that went on to the caller would end the program. A frame of a few instructions,
//! whose personality routine says that it handles whatever comes, stands between callbacks and this
//! library. It exists on 64-bit x86 Linux; elsewhere callbacks are called directly.

/// Calls back; an exception becomes its message.
pub fn caught<R: Default>(callback: impl FnOnce() -> R) -> Result<R, String> {
    imp::caught(callback)
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
mod imp {
    pub fn caught<R: Default>(callback: impl FnOnce() -> R) -> Result<R, String> {
        Ok(callback())
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::ffi::{CStr, c_char, c_int, c_void};

    /// The head that the unwinder's ABI gives every exception; what was thrown follows.
    #[repr(C, align(16))]
    struct Exception {
        class: u64,
        cleanup: *const c_void,
        private: [u64; 2],
    }

    /// The class of exceptions that `throw` makes with libstdc++ ("GNUCC++\0").
    const CXX: u64 = 0x474e_5543_432b_2b00;
    /// The class of Rust's panics ("MOZ\0RUST"), which go on: [`crate::boundary::run`] is for them.
    const RUST: u64 = 0x4d4f_5a00_5255_5354;
    /// Where the type of what was thrown lies before the head of a C++ exception.
    const TYPE_BEFORE_HEAD: usize = 80;

    unsafe extern "C" {
        fn azulejo_guarded_call(
            call: extern "C-unwind" fn(*mut c_void),
            data: *mut c_void,
        ) -> *mut Exception;
        fn azulejo_guarded_landing();
        fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
        fn _Unwind_SetIP(context: *mut c_void, address: usize);
        fn _Unwind_DeleteException(exception: *mut Exception);
        fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    // Calls its first argument with its second and returns null, or the exception that came
    // through: the personality routine lets unwinding end at the landing, with the exception in the
    // register of results.
    std::arch::global_asm!(
        ".pushsection .text.azulejo_guarded_call,\"ax\",@progbits",
        ".globl azulejo_guarded_call",
        ".hidden azulejo_guarded_call",
        ".type azulejo_guarded_call,@function",
        "azulejo_guarded_call:",
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 16",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        ".globl azulejo_guarded_landing",
        ".hidden azulejo_guarded_landing",
        "azulejo_guarded_landing:",
        "add rsp, 8",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        ".size azulejo_guarded_call, . - azulejo_guarded_call",
        ".popsection",
        personality = sym personality,
    );

    /// Says to the unwinder that the guarded call handles every exception but Rust's own.
    unsafe extern "C" fn personality(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut Exception,
        context: *mut c_void,
    ) -> c_int {
        const SEARCH: c_int = 1;
        const HANDLER_FRAME: c_int = 4;
        const FORCED: c_int = 8;
        const FATAL: c_int = 3;
        const HANDLER_FOUND: c_int = 6;
        const INSTALL_CONTEXT: c_int = 7;
        const CONTINUE: c_int = 8;
        if version != 1 {
            return FATAL;
        }
        if class == RUST || actions & FORCED != 0 {
            return CONTINUE;
        }
        if actions & SEARCH != 0 {
            return HANDLER_FOUND;
        }
        if actions & HANDLER_FRAME == 0 {
            return CONTINUE;
        }
        // SAFETY: the unwinder passes its context; registers 0 and 1 (rax, rdx) are those that
        // landings may be given.
        unsafe {
            _Unwind_SetGR(context, 0, exception as usize);
            _Unwind_SetGR(context, 1, 0);
            _Unwind_SetIP(context, azulejo_guarded_landing as *const () as usize);
        }
        INSTALL_CONTEXT
    }

    struct Call<F, R> {
        callback: Option<F>,
        result: R,
    }

    extern "C-unwind" fn run<F: FnOnce() -> R, R>(call: *mut c_void) {
        // SAFETY: `caught` passes its own `Call`, which outlives the call.
        let call = unsafe { &mut *call.cast::<Call<F, R>>() };
        if let Some(callback) = call.callback.take() {
            call.result = callback();
        }
    }

    pub fn caught<R: Default>(callback: impl FnOnce() -> R) -> Result<R, String> {
        fn start<F: FnOnce() -> R, R>(call: &mut Call<F, R>) -> *mut Exception {
            // SAFETY: the guarded call runs `run` with the address of what it takes.
            unsafe { azulejo_guarded_call(run::<F, R>, (&raw mut *call).cast()) }
        }
        let mut call = Call {
            callback: Some(callback),
            result: R::default(),
        };
        let exception = start(&mut call);
        if exception.is_null() {
            return Ok(call.result);
        }
        // SAFETY: the unwinder handed over a live exception, which nobody else knows any more.
        let message = unsafe { message(exception) };
        // SAFETY: as above; this is its end.
        unsafe { _Unwind_DeleteException(exception) };
        Err(message.unwrap_or_else(|| "an exception that is no std::exception".into()))
    }

    /// What a `std::exception` says of itself; `None` for other exceptions.
    ///
    /// # Safety
    /// The exception is live.
    unsafe fn message(exception: *mut Exception) -> Option<String> {
        type DoCatch =
            unsafe extern "C" fn(*const c_void, *const c_void, *mut *mut c_void, u32) -> bool;
        type What = unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char;
        const LAZY: c_int = 1;
        const LOADED_ALREADY: c_int = 4;
        // SAFETY: of exceptions of this class, what was thrown follows the head, and its type lies
        // before it: layouts of the C++ ABI. libstdc++ is loaded, as it threw; slots 4 of a type's
        // virtual table ("would a handler of this type catch that one?") and 2 of std::exception's
        // (`what`) are of the ABI too.
        unsafe {
            if (*exception).class != CXX {
                return None;
            }
            let thrown_type = exception
                .byte_sub(TYPE_BEFORE_HEAD)
                .cast::<*const c_void>()
                .read();
            let mut object: *mut c_void = exception.add(1).cast();
            let library = dlopen(c"libstdc++.so.6".as_ptr(), LAZY | LOADED_ALREADY);
            if library.is_null() {
                return None;
            }
            let base = dlsym(library, c"_ZTISt9exception".as_ptr());
            if base.is_null() {
                return None;
            }
            let slot = |object: *const c_void, index: usize| {
                let table = object.cast::<*const *const c_void>().read();
                table.add(index).read()
            };
            let do_catch = std::mem::transmute::<*const c_void, DoCatch>(slot(base, 4));
            if !do_catch(base, thrown_type, &raw mut object, 1) {
                return None;
            }
            let what = std::mem::transmute::<*const c_void, What>(slot(object, 2))(object);
            (!what.is_null()).then(|| CStr::from_ptr(what).to_string_lossy().into_owned())
        }
    }
}
