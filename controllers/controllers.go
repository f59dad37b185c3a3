// SPDX-License-Identifier: Apache-2.0

// Package controllers wires the reconcilers of the manager: one package per kind, each with a table of phases. A phase
// observes, starts at most one task in VCD, and returns; it never waits. State beyond the objects is held in memory
// only. Its loss costs a read, never a VM.
package controllers

import (
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/cloudprovider"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/cluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/handover"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/identity"
	rules "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/secretcache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machinetemplate"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/podproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/remediation"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/servingcert"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/zone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// Options are the dependencies of all reconcilers.
type Options struct {
	Client           client.Client
	Live             client.Reader // uncached
	Metadata         client.Reader // of Secrets, cached
	Recorder         events.EventRecorder
	Pool             *vcd.Pool
	Namespace        string // of the Secrets of VCDClusterIdentities
	WatchFilterValue string
}

// Controllers are the reconcilers of the manager. The caller sets the image and the interval of CloudProvider, and the
// interval of PodProxy.
type Controllers struct {
	Identity        *identity.Reconciler
	ClusterIdentity *identity.ClusterReconciler
	Cluster         *cluster.Reconciler
	Machine         *machine.Reconciler
	MachineTemplate *machinetemplate.Reconciler
	CloudProvider   *cloudprovider.Reconciler
	Affinity        *affinity.Reconciler
	DeploymentZone  *zone.Reconciler
	FailureDomain   *zone.DomainReconciler
	PodProxy        *podproxy.Reconciler
	RDE             *rde.Reconciler
	Remediation     *remediation.Reconciler
	ServingCert     *servingcert.Reconciler
	Handover        *handover.Reconciler
}

// New returns reconcilers that share their sessions.
func New(o Options) *Controllers { //nolint:funlen // A table with one field per line.
	secrets := secretcache.New(o.Live, o.Metadata)
	o.Client = secrets.Writing(o.Client)
	identities := identities.Resolver{
		Client:    o.Client,
		Live:      o.Live,
		Namespace: o.Namespace,
		Accounts:  &tokens.Accounts{},
		Secrets:   secrets,
	}
	workloads := workload.NewClients(o.Client, o.Client.Scheme())
	sessions := session.Of(o.Pool)
	drivers := vapp.NewDrivers(workloads.Open)
	settled := &rules.Settled{}
	endpoints := &edgeendpoint.Endpoints{}
	writes := phases.NewWrites()
	return &Controllers{
		Identity: &identity.Reconciler{
			Client:           o.Client,
			Identities:       identities,
			Sessions:         sessions,
			Logout:           o.Pool.Logout,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
		},
		ClusterIdentity: &identity.ClusterReconciler{
			Client:           o.Client,
			Identities:       identities,
			Sessions:         sessions,
			Logout:           o.Pool.Logout,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
		},
		Cluster: &cluster.Reconciler{
			Client:           o.Client,
			Live:             o.Live,
			Secrets:          secrets,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Drivers:          drivers,
			Endpoints:        endpoints,
		},
		Machine: &machine.Reconciler{
			Client:           o.Client,
			Live:             o.Live,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Drivers:          drivers,
			Workload:         workloads.Open,
			Endpoints:        endpoints,
			Apart:            settled,
		},
		Affinity: &affinity.Reconciler{
			Client:           o.Client,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Settled:          settled,
		},
		MachineTemplate: &machinetemplate.Reconciler{
			Client:           o.Client,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
		},
		CloudProvider: &cloudprovider.Reconciler{
			Client:           o.Client,
			Secrets:          secrets,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Workload:         workloads.Open,
		},
		DeploymentZone: &zone.Reconciler{
			Client:           o.Client,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
		},
		FailureDomain: &zone.DomainReconciler{
			Client:           o.Client,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
		},
		PodProxy: &podproxy.Reconciler{
			Client:           o.Client,
			Secrets:          secrets,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Workload:         workloads.Open,
		},
		RDE: &rde.Reconciler{
			Client:           o.Client,
			Live:             o.Live,
			Identities:       identities,
			Sessions:         sessions,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Version:          version.String(),
		},
		ServingCert: &servingcert.Reconciler{
			Client:           o.Client,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
			Workload:         workloads.Open,
		},
		Handover: &handover.Reconciler{
			Client:           o.Client,
			Recorder:         o.Recorder,
			WatchFilterValue: o.WatchFilterValue,
			Workload:         workloads.Open,
		},
		Remediation: &remediation.Reconciler{
			Client:           o.Client,
			Recorder:         o.Recorder,
			Writes:           writes,
			WatchFilterValue: o.WatchFilterValue,
		},
	}
}
