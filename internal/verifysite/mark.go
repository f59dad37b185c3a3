// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"
)

// NamePrefix is the prefix of the names of all objects that a run creates.
const NamePrefix = "capvcd-verify-"

// runName matches the name of an object of a run and captures the ID of the run.
var runName = regexp.MustCompile(`^` + NamePrefix + `([0-9a-f]{8})-`)

// newRun returns the random ID of a run.
func newRun() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // it never fails
	return hex.EncodeToString(id)
}

// nameOf returns the name of an object of a run.
func nameOf(run, what string) string { return NamePrefix + run + "-" + what }

// markOf returns the description that the request to create an object contains.
func markOf(run string) string {
	return "vcdctl verify-site " + run + ": vcdctl verify-site --clean-up removes it"
}

// runOf returns the run that an object belongs to, or the empty string. Its name and its marker must contain the same
// run.
func runOf(name, description string) string {
	match := runName.FindStringSubmatch(name)
	if match == nil || !strings.HasPrefix(description, markOf(match[1])) {
		return ""
	}
	return match[1]
}
