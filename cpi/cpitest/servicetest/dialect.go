// SPDX-License-Identifier: Apache-2.0

// Package servicetest provides a dialect with only the annotations that the core handles, for tests.
package servicetest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Prefix is the prefix of all annotations.
const Prefix = "test.example.com/"

// Names of the annotations.
const (
	Addresses      = Prefix + "addresses"
	Location       = Prefix + "location"
	DryRun         = Prefix + "dry-run"
	Hostname       = Prefix + "hostname"
	OlderAddresses = Prefix + "intent"
	OlderLocations = Prefix + "standing"
)

var annotations = service.Annotations[service.Settings]{
	Prefix: Prefix,
	Table: []service.Annotation[service.Settings]{
		{
			Name: "addresses",
			Parse: func(a *service.Settings, v string) (err error) {
				a.Addresses,
					err = service.Addresses(v)
				return err
			},
		},
		{Name: "location", Parse: func(a *service.Settings, v string) error { a.Location = v; return nil }},
		{Name: "share", Parse: func(a *service.Settings, v string) error { a.Share = v; return nil }},
		{
			Name: "dry-run",
			Parse: func(a *service.Settings, v string) (err error) {
				a.DryRun,
					err = service.Bool(v)
				return err
			},
		},
		{Name: "hostname"},
		{Name: "intent"},
		{Name: "standing"},
	},
}

// A Dialect reads the annotations of this package. It needs no Secrets.
type Dialect struct{ Noun string }

var _ service.Dialect = Dialect{}

// Names implements [service.Dialect].
func (d Dialect) Names() service.Names {
	return service.Names{OlderAddresses: OlderAddresses, OlderLocations: OlderLocations, Location: Location, Noun: d.Noun}
}

// Read implements [service.Dialect].
func (Dialect) Read(s *corev1.Service) (service.Settings, []loadbalancer.Finding) {
	return annotations.Read(s.Annotations)
}

// SecretNames implements [service.Dialect].
func (Dialect) SecretNames(*corev1.Service) []string { return nil }

// Extend implements [service.Dialect].
func (Dialect) Extend(in service.Input, request *service.Request) {
	request.Hostname = in.Service.Annotations[Hostname]
	request.Notices = append(request.Notices, annotations.Unknown(in.Service.Annotations)...)
}

// Records are records of Services by UID.
type Records map[types.UID]service.Record

// Of implements [service.Records].
func (r Records) Of(uid types.UID) service.Record { return r[uid] }
