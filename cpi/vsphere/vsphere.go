// SPDX-License-Identifier: Apache-2.0

// Package vsphere is the backend of the cloud controller manager for vSphere. Machines are the VMs of one or more
// vCenters. It has no load balancers and no routes, because vSphere itself has none.
package vsphere

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// ProviderName is the name of the provider and the scheme of its provider IDs.
const ProviderName = "vsphere"

// Errors that make a vCenter unusable.
var (
	errCredentials = errors.New("the credentials are rejected")
	errDatacenter  = errors.New("the datacenter does not exist")
)

// providerID returns the provider ID of a VM with a BIOS UUID.
func providerID(biosUUID string) string { return ProviderName + "://" + strings.ToLower(biosUUID) }

// uuidsOf returns a UUID in both byte orders. Guests see the first three groups of a BIOS UUID in an order that depends
// on the version of the virtual hardware.
func uuidsOf(text string) []string {
	u, err := uuid.Parse(text)
	if err != nil {
		return nil
	}
	swapped := u
	for i, from := range []int{3, 2, 1, 0, 5, 4, 7, 6} {
		swapped[i] = u[from]
	}
	if swapped == u {
		return []string{u.String()}
	}
	return []string{u.String(), swapped.String()}
}

// parseProviderID returns the UUIDs that a provider ID may refer to.
func parseProviderID(id string) ([]string, error) {
	uuids := uuidsOf(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(id)), ProviderName+"://"))
	if uuids == nil {
		return nil, fmt.Errorf("%q is not a provider ID of the form vsphere://<UUID>", id)
	}
	return uuids, nil
}
