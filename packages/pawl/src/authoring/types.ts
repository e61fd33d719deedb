/**
 * The key under which a class or a definition carries its types, never a value. Reading them there does not look
 * at `run`: its inferred return type may depend on the very bindings that are being computed.
 */
export declare const types: unique symbol;
