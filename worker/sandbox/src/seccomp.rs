//! The system calls that code in a box may not make. What a script needs is allowed; what has been the way out of
//! containers, or gives no ordinary program anything, is refused with `EPERM`. Calls of another architecture kill.

use std::collections::BTreeMap;

use anyhow::Context as _;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Refused whatever the arguments.
const REFUSED: &[c_long] = &[
    // Other processes' memory and execution.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // File systems.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_fanotify_init,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // The kernel's programmable and often broken corners.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_vmsplice,
    libc::SYS_lookup_dcookie,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_mbind,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_set_mempolicy,
];

/// Memory that belongs to no process. Refused where no cgroup counts it.
const HIDDEN_MEMORY: &[c_long] = &[libc::SYS_memfd_create, libc::SYS_memfd_secret, libc::SYS_shmget, libc::SYS_msgget];

/// As [`REFUSED`], on machines of this architecture only.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Flags of `clone` that make a namespace: all but those of time, which lies in the exit signal's bits.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Installs the filter for this process and all it starts. There is no way back. `is_watched`: a watcher counts the
/// box's memory, by its processes.
///
/// # Errors
/// When the kernel has no seccomp filters.
pub(super) fn install(is_watched: bool) -> anyhow::Result<()> {
    for program in programs(is_watched)? {
        seccompiler::apply_filter(&program).context("the filter of system calls")?;
    }
    Ok(())
}

fn programs(is_watched: bool) -> anyhow::Result<Vec<BpfProgram>> {
    let hidden_memory = if is_watched { HIDDEN_MEMORY } else { &[] };
    let mut refused: BTreeMap<c_long, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).chain(hidden_memory).map(|call| (*call, Vec::new())).collect();
    let namespaces = NEW_NAMESPACES
        .iter()
        .map(|flag| {
            let flag = u64::from(flag.unsigned_abs());
            let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
            SeccompRule::new(vec![condition])
        })
        .collect::<Result<Vec<_>, _>>()?;
    refused.insert(libc::SYS_clone, namespaces);
    // Pushing characters into a terminal's input.
    let ioctls = [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| {
            // The kernel looks at the lower half only.
            SeccompRule::new(vec![SeccompCondition::new(
                1,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Eq,
                u64::from(request as u32),
            )?])
        })
        .collect::<Result<Vec<_>, _>>()?;
    refused.insert(libc::SYS_ioctl, ioctls);
    // Of the kernel's many kinds of sockets, those that lie in the box's network. Others do not: AF_VSOCK reaches
    // the hypervisor from every namespace.
    let foreign = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
        .into_iter()
        .map(|family| {
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    refused.insert(libc::SYS_socket, vec![SeccompRule::new(foreign.clone())?]);
    refused.insert(libc::SYS_socketpair, vec![SeccompRule::new(foreign)?]);
    // Its flags lie in memory, where a filter cannot look; "no such call" makes every C library use `clone`.
    let hidden = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);

    let mut programs = Vec::new();
    for (rules, errno) in [(refused, libc::EPERM), (hidden, libc::ENOSYS)] {
        let arch = std::env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), arch)?;
        programs.push(filter.try_into()?);
    }
    #[cfg(target_arch = "x86_64")]
    programs.push(without_x32());
    Ok(programs)
}

/// Kills on calls of the x32 ABI: they share the architecture's number but not the list above.
#[cfg(target_arch = "x86_64")]
fn without_x32() -> BpfProgram {
    use libc::{BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt: u8, jf: u8, k: u32| seccompiler::sock_filter { code: code as u16, jt, jf, k };
    vec![
        // The call's number stands first in what the kernel shows.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_on_this_machine() {
        for is_watched in [false, true] {
            assert!(programs(is_watched).unwrap().iter().all(|program| !program.is_empty()));
        }
    }
}
