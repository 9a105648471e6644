// Package learn remembers what targets proved: fields they refuse, output
// limits, and how long they take to their first token. Facts are shared by all
// replicas and expire; paces are counted in the process.
package learn
