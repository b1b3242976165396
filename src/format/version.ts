// The version of this package and of the formats that it writes: what every record says about its
// author.

/** Of the package; a test keeps it equal to package.json. */
export const packageVersion = "0.1.0";

/**
 * The newest format that this release reads and writes. Grows only when an older release could
 * misread what a newer one wrote.
 */
export const formatVersion = 1;
