/**
 * The key under which a class or a definition carries its types; there never is a value. The types are read from there
 * and not from `run`, because the inferred return type of `run` may depend on the very bindings that are being
 * computed.
 */
export declare const types: unique symbol;
