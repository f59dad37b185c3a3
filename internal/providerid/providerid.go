// SPDX-License-Identifier: Apache-2.0

// Package providerid formats and parses the provider ID of a machine on VMware Cloud Director:
// "vmware-cloud-director://" followed by the URN of the VM. VMware's CAPVCD and cloud provider interface write the same
// format, so Nodes and Machines of adopted clusters keep their provider IDs. The package depends on neither Kubernetes
// nor VCD.
package providerid

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

const (
	// Prefix is the prefix of every provider ID.
	Prefix = "vmware-cloud-director://"

	vmURNPrefix = "urn:vcloud:vm:"
)

// ErrInvalid is wrapped by every error of Parse.
var ErrInvalid = errors.New("not a provider ID of VMware Cloud Director")

// Format returns the provider ID of the VM with the URN vmURN.
func Format(vmURN string) string {
	return Prefix + vmURN
}

// Parse returns the URN of the VM in the provider ID id, exactly as it is written there, so that Format returns id.
func Parse(id string) (vmURN string, err error) {
	vmURN, ok := strings.CutPrefix(id, Prefix)
	if !ok {
		return "", fmt.Errorf("provider ID %q does not start with %s: %w", id, Prefix, ErrInvalid)
	}
	uuid, ok := strings.CutPrefix(vmURN, vmURNPrefix)
	if !ok {
		return "", fmt.Errorf("provider ID %q does not name a VM by %s<uuid>: %w", id, vmURNPrefix, ErrInvalid)
	}
	if !isUUID(uuid) {
		return "", fmt.Errorf("provider ID %q does not end with a UUID: %w", id, ErrInvalid)
	}
	return vmURN, nil
}

// isUUID reports whether s is a UUID in the form with hyphens, 8-4-4-4-12, which VCD uses.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }
