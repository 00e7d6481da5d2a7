export const Segment = undefined;
export const Version = undefined;
