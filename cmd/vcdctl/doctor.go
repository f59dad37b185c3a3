// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	manifests []string
	vdc       string
	networks  []string
	templates []string
	strict    bool
}

func (p *program) doctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Run preflight checks",
		Long: `Runs preflight checks: API version, login, TLS, each right and the features that depend on it, capacity and quotas of
the VDC, networks and free addresses, templates, policies, leases, load balancers, IP Spaces, and the type of runtime
defined entities. The command is read-only.

With -f, it checks a manifest: names, the virtual IP, and the capacity for its machines. It resolves a Cluster with a
topology as Cluster API does. The ClusterClass and its templates are in the same manifest, in another one, or in the
management cluster of --kubeconfig and --context.`,
		Example: strings.ReplaceAll(`  # a manifest, with the identity in it or the one that it refers to
  vcdctl doctor -f cluster.yaml

  # a Cluster with a topology, whose ClusterClass is in another file
  vcdctl doctor -f cluster.yaml -f templates/clusterclass-quick-start.yaml

  # a VDC, with a network and a template; credentials from the environment
  export VCD_SITE=https://vcd.example.com VCD_ORGANIZATION=acme VCD_USERNAME=capvcd VCD_PASSWORD
  vcdctl doctor --vdc acme-vdc --network nodes --template kubernetes/ubuntu-2404-kube-v1.36.3`, "vcdctl", p.name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.doctor(c.Context(), f) },
	}
	c.Flags().StringSliceVarP(&f.manifests, "filename", "f", nil,
		"Manifest file; several files are combined. Use - for standard input.")
	c.Flags().StringVar(&f.vdc, "vdc", "", "VDC to check; overrides the manifest. Defaults to the only VDC.")
	c.Flags().StringSliceVar(&f.networks, "network", nil, "Additional networks to check.")
	c.Flags().StringSliceVar(&f.templates, "template", nil, "Additional templates to check, as catalog/template.")
	c.Flags().BoolVar(&f.strict, "strict", false, "Exit with code 2 on warnings too.")
	return c
}

func (p *program) doctor(ctx context.Context, f doctorFlags) error {
	plan, want, err := p.plan(ctx, f)
	if err != nil {
		return err
	}
	config, err := p.resolve(ctx, want)
	if err != nil {
		return err
	}
	pool := newPool()
	defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }()
	plan.Logins = p.logins(plan.Others, pool)
	report, err := doctor.Run(ctx,
		func(ctx context.Context) (*vcd.Session, error) { return pool.Session(ctx, config) }, plan)
	if printed := p.printReport(report); err != nil || printed != nil {
		return errors.Join(err, printed)
	}
	if report.Problems() > 0 || f.strict && len(report.Findings) > 0 {
		return errFindings
	}
	return nil
}

// logins returns the logins of the additional identities of a manifest. Their credentials come from the manifest, or
// otherwise from the management cluster.
func (p *program) logins(others []doctor.Other, pool *vcd.Pool) []doctor.Login {
	all := make([]doctor.Login, 0, len(others))
	for _, other := range others {
		open := func(ctx context.Context) (*vcd.Session, error) {
			config, err := p.configFromOther(ctx, other)
			if err != nil {
				return nil, err
			}
			return pool.Session(ctx, config)
		}
		all = append(all, doctor.Login{Other: other, Open: open})
	}
	return all
}

// configFromOther returns the login configuration of an additional identity. It never sends the credentials to another site
// than the identity's.
func (p *program) configFromOther(ctx context.Context, other doctor.Other) (vcd.Config, error) {
	var config vcd.Config
	var err error
	switch {
	case other.Identity != nil && other.Identity.Spec.Type == infrav1.CredentialServiceAccount:
		return config, fmt.Errorf("a service account, and only the manager may use its token: %w", doctor.ErrUnknown)
	case other.Identity != nil && other.Secret != nil:
		config, err = configFromSecret(other.Identity.Spec, other.Secret)
	case other.Identity != nil:
		return config, fmt.Errorf("the manifest has no Secret %s: %w", other.Identity.Spec.SecretRef.Name,
			doctor.ErrUnknown)
	default:
		if config, err = p.configFromIdentity(ctx, request{namespace: other.Namespace}, other.Ref); err != nil {
			err = fmt.Errorf("%w: %w", doctor.ErrUnknown, err)
		}
	}
	if err != nil {
		return config, err
	}
	if config.Site == "" {
		config.Site = other.Site
	}
	config.Org = other.Org
	config.Insecure = config.Insecure || p.access.insecure
	if p.access.caFile != "" {
		if config.CABundle, err = readAuthorities(p.access.caFile); err != nil {
			return config, err
		}
	}
	return config, checkSites(config.Site, other.Site)
}

// plan returns the plan of the checks, and the login settings of the manifests.
func (p *program) plan(ctx context.Context, f doctorFlags) (doctor.Plan, request, error) {
	var plan doctor.Plan
	var want request
	if len(f.manifests) > 0 {
		var err error
		if plan, err = p.readManifests(ctx, f.manifests); err != nil {
			return plan, want, err
		}
		c := plan.Cluster
		want = request{
			namespace: c.Namespace,
			site:      c.Spec.Site,
			org:       c.Spec.Org,
			ref:       c.Spec.IdentityRef,
			identity:  plan.Identity,
			secret:    plan.Secret,
		}
	}
	if f.vdc != "" {
		plan = plan.InVDC(f.vdc)
	}
	plan.Networks = f.networks
	for _, text := range f.templates {
		catalog, template, ok := strings.Cut(text, "/")
		if !ok {
			return plan, want, fmt.Errorf("--template is %q: the format is catalog/template", text)
		}
		plan.Machines = append(plan.Machines, doctor.Machines{
			Name: text,
			Spec: infrav1.VCDMachineSpec{Catalog: catalog, Template: template},
		})
	}
	return plan, want, nil
}

// readManifests reads the plan from files. Missing objects of a ClusterClass are read from the management cluster.
func (p *program) readManifests(ctx context.Context, paths []string) (doctor.Plan, error) {
	from := doctor.Sources{Lookup: p.lookUp, List: p.list}
	for _, path := range paths {
		manifest, err := p.openManifest(path)
		if err != nil {
			return doctor.Plan{}, err
		}
		defer manifest.Close()
		from.Manifests = append(from.Manifests, manifest)
	}
	return doctor.ReadPlan(ctx, from)
}

// listTimeout is short, because the result is optional.
const listTimeout = 5 * time.Second

// lookUp reads an object from the management cluster.
func (p *program) lookUp(ctx context.Context, key doctor.Key) (*unstructured.Unstructured, error) {
	c, ofContext, err := p.connect(first(p.access.contexts))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(key.Kind)
	namespace := cmp.Or(key.Namespace, p.access.namespace, ofContext)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, object); err != nil {
		return nil, err
	}
	return object, nil
}

// list reads the objects of a kind from the management cluster.
func (p *program) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	c, ofContext, err := p.connect(first(p.access.contexts))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(kind)
	err = c.List(ctx, objects, client.InNamespace(cmp.Or(namespace, p.access.namespace, ofContext)))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	found := make([]*unstructured.Unstructured, 0, len(objects.Items))
	for i := range objects.Items {
		found = append(found, &objects.Items[i])
	}
	return found, nil
}

func (p *program) openManifest(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(p.in), nil
	}
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, fmt.Errorf("opening the manifest: %w", err)
	}
	return file, nil
}

func (p *program) printReport(r doctor.Report) error {
	if p.output == "json" {
		r.Findings = nonNil(r.Findings)
		r.Skipped = nonNil(r.Skipped)
		return p.printJSON(r)
	}
	for _, fact := range r.Facts {
		fmt.Fprintln(p.out, printable(fact))
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(p.out, "\n%d checks passed.\n", len(r.Passed))
		return nil
	}
	fmt.Fprintln(p.out)
	for _, f := range r.Findings {
		fmt.Fprintf(p.out, "%-7s  %-8s  %s: %s\n", strings.ToUpper(string(f.Severity)), f.Check, printable(f.Message),
			printable(f.Remedy))
	}
	fmt.Fprintf(p.out, "\n%d checks passed", len(r.Passed))
	if len(r.Skipped) > 0 {
		fmt.Fprintf(p.out, ", skipped: %s", strings.Join(r.Skipped, ", "))
	}
	fmt.Fprintln(p.out, ".")
	return nil
}
