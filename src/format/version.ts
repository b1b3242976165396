// The version of this package and of the formats that it writes; every record states both.

/** The version of the package. */
export const packageVersion = "0.2.0";

/**
 * The newest format that this release reads and writes. It grows only if an older release could
 * misread what a newer one wrote.
 */
export const formatVersion = 1;
