// The names of the sites that the share bed runs: a scenario of the bed picks tests by them.

/** The share, when TMPDIR is there. */
export const realDisk = "the real disk";
export const realDiskForShares = `${realDisk}, mode share`;
