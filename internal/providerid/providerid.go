// SPDX-License-Identifier: Apache-2.0

// Package providerid formats and parses the provider ID of a machine on VMware Cloud Director:
// "vmware-cloud-director://" followed by the URN of the VM. It is what VMware's CAPVCD and cloud provider
// interface write too, so Nodes and Machines of adopted clusters keep theirs. The package knows neither
// Kubernetes nor VCD.
package providerid

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

const (
	// Prefix starts every provider ID.
	Prefix = "vmware-cloud-director://"

	vmURNPrefix = "urn:vcloud:vm:"
)

// ErrInvalid is what every error of Parse wraps.
var ErrInvalid = errors.New("not a provider ID of VMware Cloud Director")

// Format returns the provider ID of the VM with the URN vmURN.
func Format(vmURN string) string {
	return Prefix + vmURN
}

// Parse returns the URN of the VM that the provider ID id names. The URN comes back as it is written in id:
// Format of it is id again.
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

// isUUID accepts only the form with hyphens, 8-4-4-4-12, which VCD writes.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }
