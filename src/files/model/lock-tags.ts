// The tags of the locks that Holdfast itself takes in a tree: by them a caller tells such a lock from one of its own.

/** The tag of every lock that an operation takes begins so. */
export const tagPrefix = "files: ";
/** Of a lock that a worker takes by itself: for a moment, or while it indexes what was added. */
export const indexingTag: string = `${tagPrefix}indexing`;
/** Of the lock under which the sidecars of a directory are written. */
export const summaryTag: string = `${tagPrefix}summary`;
