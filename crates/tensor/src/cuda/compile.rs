//! Run-time compilation of the kernels with NVRTC, with a cache of binaries.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use cudarc::driver::sys;
use cudarc::nvrtc::{result, sys as nvrtc};

use super::kernels::SOURCE;
use crate::device::CudaOptions;
use crate::{Error, Precision, Result};

/// The most shared memory that attention uses: four tiles of 64 rows of 132 values, and one of 64 · 68.
pub(super) const ATTENTION_SHARED: i32 = 4 * (4 * 64 * 132 + 64 * 68 + 64);

#[expect(clippy::needless_pass_by_value, reason = "the signature of `map_err`")]
fn failed(detail: impl ToString) -> Error {
    Error::Cuda { doing: "compile the kernels", detail: detail.to_string() }
}

/// The binary for compute capability `arch`, from the cache if it is there.
pub(super) fn binary(arch: i32, options: &CudaOptions, has_compiler: bool) -> Result<Vec<u8>> {
    let flags = flags(arch, options.precision);
    let file = options.cache.as_ref().map(|folder| folder.join(file_name(&flags)));
    if let Some(binary) = file.as_ref().and_then(|file| fs::read(file).ok()).filter(|binary| is_elf(binary)) {
        return Ok(binary);
    }
    if !has_compiler {
        let reason = "CUDA's run-time compiler was not found (libnvrtc); install the CUDA libraries";
        return Err(Error::NoGpu { reason: reason.into() });
    }
    // On all threads, where the compiler is new enough to support it.
    let with_threads: Vec<String> = flags.iter().cloned().chain(["--split-compile=0".to_owned()]).collect();
    let binary = compile(&with_threads).or_else(|_| compile(&flags))?;
    if let Some(file) = file {
        // Without a writable cache the next start compiles again.
        let _ = write_atomically(&file, &binary);
    }
    Ok(binary)
}

/// Removes a cached binary, so that it is compiled again.
pub(super) fn remove_cached(arch: i32, options: &CudaOptions) {
    if let Some(folder) = &options.cache {
        let _ = fs::remove_file(folder.join(file_name(&flags(arch, options.precision))));
    }
}

fn flags(arch: i32, precision: Precision) -> Vec<String> {
    let mut flags = vec![format!("--gpu-architecture=sm_{arch}"), "--std=c++17".to_owned()];
    if precision == Precision::Bf16 {
        flags.push("-DBF16=1".to_owned());
    }
    flags
}

/// The CUDA version of the driver: 1000 · major + 10 · minor.
#[expect(unsafe_code, reason = "a driver call")]
pub(super) fn driver_version() -> i32 {
    let mut version = 0;
    // SAFETY: the driver writes one `i32`, which `version` is.
    let _ = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    version
}

/// A hash of everything the binary depends on.
fn file_name(flags: &[String]) -> String {
    let version = driver_version();
    let key = format!("{SOURCE}\n{flags:?}\n{version}");
    // FNV-1a: a cache key, not cryptographic, that must stay the same between versions of Rust.
    let hash = key
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    format!("{hash:016x}.cubin")
}

/// Whether the file looks complete: a cubin is an ELF file.
fn is_elf(binary: &[u8]) -> bool {
    binary.len() > 64 && binary.starts_with(b"\x7fELF")
}

/// Writes a temporary file and renames it, so that readers see all of it or nothing.
pub(super) fn write_atomically(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    fs::write(&draft, bytes)?;
    fs::rename(&draft, file)
}

/// Runs NVRTC.
#[expect(unsafe_code, reason = "NVRTC calls")]
fn compile(flags: &[String]) -> Result<Vec<u8>> {
    let source = CString::new(SOURCE).map_err(failed)?;
    let program = result::create_program(&source, None).map_err(failed)?;
    // SAFETY: the program is alive until it is destroyed below; the binary has the size that NVRTC
    // reported for it.
    unsafe {
        if let Err(error) = result::compile_program(program, flags) {
            let log = result::get_program_log(program).unwrap_or_default();
            let log: String = log.iter().map(|&c| char::from(c.cast_unsigned())).collect();
            let _ = result::destroy_program(program);
            return Err(failed(format!("{error}: {}", log.trim_end_matches('\0').trim())));
        }
        let mut size = 0;
        nvrtc::nvrtcGetCUBINSize(program, &raw mut size).result().map_err(failed)?;
        let mut binary = vec![0_u8; size];
        nvrtc::nvrtcGetCUBIN(program, binary.as_mut_ptr().cast()).result().map_err(failed)?;
        let _ = result::destroy_program(program);
        Ok(binary)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels;
    use super::*;

    /// Needs NVRTC but no GPU. Where `HOPEDGN_TEST_NVRTC` is set, NVRTC must be there.
    #[test]
    #[expect(unsafe_code, reason = "looks for a library")]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn every_kernel_compiles_for_ampere_and_hopper() {
        // SAFETY: this only tries to load a library.
        if !unsafe { nvrtc::is_culib_present() } {
            let is_required = std::env::var_os("HOPEDGN_TEST_NVRTC").is_some_and(|value| !value.is_empty());
            assert!(!is_required, "HOPEDGN_TEST_NVRTC is set, but libnvrtc cannot be loaded; check LD_LIBRARY_PATH");
            eprintln!("skipped: libnvrtc cannot be loaded; set HOPEDGN_TEST_NVRTC to fail instead");
            return;
        }
        for (arch, precision) in
            [80, 90].into_iter().flat_map(|arch| [(arch, Precision::Tf32), (arch, Precision::Bf16)])
        {
            let binary = compile(&flags(arch, precision)).unwrap();
            assert!(is_elf(&binary));
            let has = |name: &str| binary.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(kernels::all().all(|kernel| has(kernel.name)));
        }
    }
}
