//! From the source of the kernels to code for one kind of card, compiled once and kept.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use cudarc::driver::sys;
use cudarc::nvrtc::{result, sys as nvrtc};

use crate::device::CudaOptions;
use crate::{Error, Precision, Result};

const SOURCE: &str = concat!(
    include_str!("kernels/common.cu"),
    include_str!("kernels/rows.cu"),
    include_str!("kernels/encoder.cu"),
    include_str!("kernels/values.cu"),
    include_str!("kernels/cells.cu"),
    include_str!("kernels/attend.cu"),
    include_str!("kernels/attend_tile.cu"),
    include_str!("kernels/attention.cu"),
    include_str!("kernels/attention_mma.cu"),
    include_str!("kernels/fragments.cu"),
    include_str!("kernels/attention_short.cu"),
    include_str!("kernels/narrow.cu"),
);

/// Every kernel of the source.
pub(super) const KERNELS: [&str; 61] = [
    "to_elem",
    "add_to",
    "gather",
    "spread",
    "put",
    "repeat_row",
    "columns_in",
    "columns_out",
    "bias_activate",
    "outer",
    "settle",
    "column_sums_elem",
    "add_partials",
    "bce",
    "scale_by",
    "find_bad",
    "adam",
    "residual_norm_8",
    "residual_norm_32",
    "norm_backward_8",
    "norm_backward_32",
    "gelu_forward",
    "gelu_backward",
    "gelu_means_backward",
    "gelu_means",
    "pool_means",
    "pool_means_backward",
    "add_two",
    "multiply_two",
    "activate",
    "drop",
    "slots",
    "slots_back",
    "take_columns",
    "put_columns",
    "swap_axes",
    "segment_sum",
    "segment_spread",
    "softmax_rows",
    "softmax_rows_backward",
    "norm_rows",
    "norm_rows_backward",
    "norm_sums",
    "gru",
    "gru_backward",
    "lstm",
    "lstm_backward",
    "attend_forward",
    "attend_queries_backward",
    "attend_keys_backward",
    "attend_tile_forward",
    "attend_tile_queries_backward",
    "attend_tile_keys_backward",
    "attention_forward",
    "attention_backward",
    "attention_forward_mma",
    "attention_backward_mma",
    "attention_forward_short",
    "attention_backward_short",
    "narrow_forward",
    "narrow_backward",
];

/// The most shared memory that attention takes: four tiles of 64 rows of 132 values, and one of 64 · 68.
pub(super) const ATTENTION_SHARED: i32 = 4 * (4 * 64 * 132 + 64 * 68 + 64);

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn failed(detail: impl ToString) -> Error {
    Error::Cuda { doing: "compile the kernels", detail: detail.to_string() }
}

/// Code for cards of compute capability `arch`, from the cache if it is there.
pub(super) fn binary(arch: i32, options: &CudaOptions, has_compiler: bool) -> Result<Vec<u8>> {
    let flags = flags(arch, options.precision);
    let file = options.cache.as_ref().map(|folder| folder.join(file_name(&flags)));
    if let Some(binary) = file.as_ref().and_then(|file| fs::read(file).ok()).filter(|binary| is_whole(binary)) {
        return Ok(binary);
    }
    if !has_compiler {
        let reason = "CUDA's run-time compiler was not found (libnvrtc); install the CUDA libraries";
        return Err(Error::NoGpu { reason: reason.into() });
    }
    // On all threads where the compiler is new enough to know how.
    let with_threads: Vec<String> = flags.iter().cloned().chain(["--split-compile=0".to_owned()]).collect();
    let binary = compile(&with_threads).or_else(|_| compile(&flags))?;
    if let Some(file) = file {
        // A cache that cannot be written costs a second at the next start, nothing else.
        let _ = keep(&file, &binary);
    }
    Ok(binary)
}

/// Removes what was kept of that, so that it is compiled anew.
pub(super) fn forget(arch: i32, options: &CudaOptions) {
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

/// 1000 · major + 10 · minor of the CUDA that the driver is for.
#[expect(unsafe_code, reason = "a call of the driver")]
pub(super) fn driver_version() -> i32 {
    let mut version = 0;
    // SAFETY: writes one number.
    let _ = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    version
}

/// Named by all that the code depends on.
fn file_name(flags: &[String]) -> String {
    let version = driver_version();
    let key = format!("{SOURCE}\n{flags:?}\n{version}");
    // FNV-1a: it need not withstand anybody, and must stay the same.
    let hash = key
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    format!("{hash:016x}.cubin")
}

/// Whether the file looks like a program: a cubin is an ELF file.
fn is_whole(binary: &[u8]) -> bool {
    binary.len() > 64 && binary.starts_with(b"\x7fELF")
}

/// Written beside its place and renamed: a reader sees all of it or nothing.
pub(super) fn keep(file: &Path, binary: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    fs::write(&draft, binary)?;
    fs::rename(&draft, file)
}

/// Runs NVRTC.
#[expect(unsafe_code, reason = "calls of the compiler")]
fn compile(flags: &[String]) -> Result<Vec<u8>> {
    let source = CString::new(SOURCE).map_err(failed)?;
    let program = result::create_program(&source, None).map_err(failed)?;
    // SAFETY: the program exists until it is destroyed below; the sizes asked for are those of the buffers handed over.
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
    use super::*;

    #[test]
    fn every_kernel_is_listed() {
        let named = SOURCE.split("__global__ void ").skip(1).map(|rest| {
            // Bounds stand between the word and the name.
            let rest = if rest.starts_with("__launch_bounds__") {
                rest.split_once(')').map_or("", |(_, rest)| rest)
            } else {
                rest
            };
            // And in a macro the end of a line.
            let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
            rest.split('(').next().unwrap_or_default().to_owned()
        });
        let mut found: Vec<String> = named
            .flat_map(|name| match name.strip_suffix("##N") {
                Some(base) => vec![format!("{base}8"), format!("{base}32")],
                None => vec![name],
            })
            .collect();
        found.sort_unstable();
        let mut listed = KERNELS.map(str::to_owned);
        listed.sort_unstable();
        assert_eq!(found, listed);
    }

    /// One that did not would read what the kernel before it has yet to write.
    #[test]
    fn every_kernel_begins_by_waiting_for_those_before_it() {
        for rest in SOURCE.split("extern \"C\" __global__").skip(1) {
            let body = rest.split_once('{').map_or("", |(_, body)| body);
            let body = body.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
            assert!(body.starts_with("AFTER_OTHERS;"), "{}", &rest[..80]);
        }
    }

    /// Needs the compiler but no card; where it is missing there is nothing to check with.
    #[test]
    #[expect(unsafe_code, reason = "looks for a library")]
    fn every_kernel_compiles_for_ampere_and_hopper() {
        // SAFETY: this only looks for a library.
        if !unsafe { nvrtc::is_culib_present() } {
            return;
        }
        for (arch, precision) in
            [80, 90].into_iter().flat_map(|arch| [(arch, Precision::Tf32), (arch, Precision::Bf16)])
        {
            let binary = compile(&flags(arch, precision)).unwrap();
            assert!(is_whole(&binary));
            let has = |name: &str| binary.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(KERNELS.iter().all(|name| has(name)));
        }
    }
}
