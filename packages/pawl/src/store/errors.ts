/** The tables are missing, or older than this code. */
export class NotMigratedError extends Error {
  static {
    this.prototype.name = "NotMigratedError";
  }

  constructor(options?: ErrorOptions) {
    super("the database has no Pawl tables, or old ones: run `await pawl.migrate()` once", options);
  }
}

/** The store was used after its `close`. */
export class StoreClosedError extends Error {
  static {
    this.prototype.name = "StoreClosedError";
  }

  constructor() {
    super("the store is closed: nothing can be asked of it after `pawl.close()`");
  }
}

/** The database was migrated by newer code, which has recorded that this code must not touch it. */
export class IncompatibleDatabaseError extends Error {
  static {
    this.prototype.name = "IncompatibleDatabaseError";
  }
}
