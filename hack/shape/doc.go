// Package shape holds no code: its tests hold the shape of the sources to the limits that no linter of .golangci.yml
// knows, such as the number of methods of a type.
package shape
