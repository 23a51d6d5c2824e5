package publish

// Version is the version of Fieldstone that writes bundles.
const Version = "0.1.0"
