// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/credentials"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// access contains the flags for the site and the credentials.
type access struct {
	kubeconfig, namespace     string
	contexts                  []string
	identity, clusterIdentity string
	secretNamespace           string
	config                    string
	site, org, caFile         string
	insecure                  bool
}

func (a *access) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "Kubeconfig file of the management clusters; the default of kubectl if not set.")
	flags.StringSliceVar(&a.contexts, "context", nil,
		"Context of the kubeconfig; list several if several management clusters use the organization. The first one contains the identity.")
	flags.StringVarP(&a.namespace, "namespace", "n", "", "Namespace in the management cluster.")
	flags.StringVar(&a.identity, "identity", "", "VCDIdentity to log in with.")
	flags.StringVar(&a.clusterIdentity, "cluster-identity", "", "VCDClusterIdentity to log in with.")
	flags.StringVar(&a.secretNamespace, "provider-namespace", "capvcd-system",
		"Namespace of the manager, and of the Secrets of VCDClusterIdentities.")
	flags.StringVar(&a.config, "config", "", "File with site and credentials.")
	flags.StringVar(&a.site, "site", "", "Address of VCD, if the credentials come without one; it must match theirs otherwise.")
	flags.StringVar(&a.org, "org", "", "Organization in VCD.")
	flags.StringVar(&a.caFile, "ca-file", "", "PEM file with trusted certificate authorities.")
	flags.BoolVar(&a.insecure, "insecure-skip-tls-verify", false,
		"Skip verification of the VCD certificate. Insecure: an attacker on the network can read the password.")
}

// identityRef returns the identity that the flags select. Its name is empty if they select none.
func (a *access) identityRef() (infrav1.IdentityReference, error) {
	switch {
	case a.identity != "" && a.clusterIdentity != "":
		return infrav1.IdentityReference{}, errors.New("--identity and --cluster-identity are mutually exclusive")
	case a.clusterIdentity != "":
		return infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: a.clusterIdentity}, nil
	}
	return infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: a.identity}, nil
}

// A fileConfig is the content of the --config file.
type fileConfig struct {
	Site               string `json:"site"`
	Org                string `json:"org"`
	Username           string `json:"username"`
	Password           string `json:"password"`
	APIToken           string `json:"apiToken"`
	CAFile             string `json:"caFile"`
	InsecureSkipVerify bool   `json:"insecureSkipVerify"`
}

// A request contains the login settings of a manifest or a cluster.
type request struct {
	namespace string
	site, org string
	ref       infrav1.IdentityReference
	identity  *infrav1.VCDIdentity // from a manifest
	secret    *corev1.Secret       // from a manifest
}

var errNoLogin = errors.New("no credentials: set --identity, --config or VCD_SITE, VCD_ORGANIZATION and credentials")

// resolve returns the login configuration. It never sends the credentials of an identity to another site than the
// identity's.
func (p *program) resolve(ctx context.Context, want request) (vcd.Config, error) {
	config, err := p.configured(ctx, want)
	if err != nil {
		return vcd.Config{}, err
	}
	a := p.access
	if config.Site == "" {
		config.Site = cmp.Or(a.site, want.site)
	}
	if err := checkSites(config.Site, a.site, want.site); err != nil {
		return vcd.Config{}, err
	}
	config.Org = cmp.Or(a.org, want.org, config.Org)
	config.Insecure = config.Insecure || a.insecure
	if a.caFile != "" {
		if config.CABundle, err = readAuthorities(a.caFile); err != nil {
			return vcd.Config{}, err
		}
	}
	return config, checkComplete(config)
}

// checkComplete returns an error if a configuration has no site or organization.
func checkComplete(config vcd.Config) error {
	switch {
	case config.Site == "":
		return errors.New("the address of VCD is missing: set --site or VCD_SITE")
	case config.Org == "":
		return errors.New("the organization is missing: set --org or VCD_ORGANIZATION")
	}
	return nil
}

// readAuthorities reads the certificates of a CA file.
func readAuthorities(path string) ([]byte, error) {
	bundle, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, fmt.Errorf("reading certificate authorities: %w", err)
	}
	return bundle, nil
}

// checkSites returns an error if credentials of one site would be used for another. Empty sites are not checked.
func checkSites(site string, others ...string) error {
	for _, other := range others {
		if other != "" && !sites.Same(other, site) {
			return fmt.Errorf("the credentials are for %s, and not for %s: use credentials of that site", site, other)
		}
	}
	return nil
}

// configured returns the first available login, in the order that the help documents.
func (p *program) configured(ctx context.Context, want request) (vcd.Config, error) {
	ref, err := p.access.identityRef()
	switch {
	case err != nil:
		return vcd.Config{}, err
	case ref.Name != "":
		return p.configFromIdentity(ctx, want, ref)
	case p.access.config != "":
		return configFromFile(p.access.config)
	case p.getenv("VCD_USERNAME") != "" || p.getenv("VCD_API_TOKEN") != "":
		return p.configFromEnvironment()
	case want.identity != nil && want.secret != nil:
		return configFromSecret(want.identity.Spec, want.secret)
	case want.ref.Name != "":
		return p.configFromIdentity(ctx, want, want.ref)
	}
	return vcd.Config{}, errNoLogin
}

func configFromFile(path string) (vcd.Config, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return vcd.Config{}, fmt.Errorf("reading --config: %w", err)
	}
	var f fileConfig
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return vcd.Config{}, fmt.Errorf("reading %s: it must be YAML with the fields site, org, username, password, apiToken, caFile and insecureSkipVerify", path)
	}
	return f.login()
}

func (p *program) configFromEnvironment() (vcd.Config, error) {
	insecure, err := strconv.ParseBool(cmp.Or(p.getenv("VCD_INSECURE_SKIP_VERIFY"), "false"))
	if err != nil {
		return vcd.Config{}, errors.New("VCD_INSECURE_SKIP_VERIFY must be true or false")
	}
	return fileConfig{
		Site:               p.getenv("VCD_SITE"),
		Org:                p.getenv("VCD_ORGANIZATION"),
		Username:           p.getenv("VCD_USERNAME"),
		Password:           p.getenv("VCD_PASSWORD"),
		APIToken:           p.getenv("VCD_API_TOKEN"),
		CAFile:             p.getenv("VCD_CA_FILE"),
		InsecureSkipVerify: insecure,
	}.login()
}

func (f fileConfig) login() (vcd.Config, error) {
	if f.APIToken == "" && (f.Username == "" || f.Password == "") {
		return vcd.Config{}, errors.New("credentials are missing: set a user name and a password, or an API token")
	}
	config := vcd.Config{
		Site:     f.Site,
		Org:      f.Org,
		Insecure: f.InsecureSkipVerify,
		Credentials: vcd.Credentials{
			Username: f.Username,
			Password: f.Password,
			APIToken: f.APIToken,
		},
	}
	if f.CAFile == "" {
		return config, nil
	}
	var err error
	if config.CABundle, err = readAuthorities(f.CAFile); err != nil {
		return vcd.Config{}, err
	}
	return config, nil
}

// configFromSecret returns the login of an identity. It refuses service accounts: each login rotates the token, so only the
// manager may use it.
func configFromSecret(identity infrav1.VCDIdentitySpec, secret *corev1.Secret) (vcd.Config, error) {
	if identity.Type == infrav1.CredentialServiceAccount {
		return vcd.Config{}, errors.New("the identity is a service account, and only the manager may use its token: use another identity, or set VCD_SITE, VCD_ORGANIZATION and credentials")
	}
	if secret.Annotations[infrav1.TokenChainAnnotation] != "" {
		return vcd.Config{}, errors.New("the Secret of the identity contains a service account token, which only its current client may use: use another identity")
	}
	config := credentials.Config(identity, secret)
	config.Site = identity.Site
	if c := config.Credentials; c.APIToken == "" && (c.Username == "" || c.Password == "") {
		return vcd.Config{}, fmt.Errorf("the Secret %s contains no credentials", secret.Name)
	}
	return config, nil
}

// configFromIdentity returns the login of an identity in the management cluster.
func (p *program) configFromIdentity(ctx context.Context, want request, ref infrav1.IdentityReference) (vcd.Config, error) {
	c, namespace, err := p.connect(first(p.access.contexts))
	if err != nil {
		return vcd.Config{}, err
	}
	namespace = cmp.Or(p.access.namespace, want.namespace, namespace)
	spec := infrav1.VCDIdentitySpec{}
	if ref.Kind == infrav1.ClusterIdentity {
		identity := &infrav1.VCDClusterIdentity{}
		err = c.Get(ctx, client.ObjectKey{Name: ref.Name}, identity)
		spec = identity.Spec.VCDIdentitySpec
		namespace = p.access.secretNamespace
	} else {
		identity := &infrav1.VCDIdentity{}
		err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, identity)
		spec = identity.Spec
	}
	if err != nil {
		return vcd.Config{}, fmt.Errorf("getting identity %s: %w", ref.Name, err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: spec.SecretRef.Name}
	if err := c.Get(ctx, key, secret); err != nil {
		return vcd.Config{}, fmt.Errorf("getting Secret %s of identity %s: %w", key, ref.Name, err)
	}
	return configFromSecret(spec, secret)
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// connectContext returns a client for a management cluster, and the namespace of its context.
func (p *program) connectContext(kubeContext string) (client.Client, string, error) {
	loaded := p.loadKubeconfig(kubeContext)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return nil, "", fmt.Errorf("reaching the management cluster: %w", err)
	}
	return c, namespace, nil
}

func (p *program) loadKubeconfig(kubeContext string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.access.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: kubeContext})
}

// readPodLog reads the log of a pod of the first management cluster.
func (p *program) readPodLog(ctx context.Context, pod client.ObjectKey, options corev1.PodLogOptions) ([]byte, error) {
	config, err := p.loadKubeconfig(first(p.access.contexts)).ClientConfig()
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &options).DoRaw(ctx)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(infrav1.AddToScheme(scheme))
	utilruntime.Must(v1beta2.AddToScheme(scheme))
	return scheme
}

// newPool returns the session pool of one run.
func newPool() *vcd.Pool {
	return vcd.NewPool(vcd.PoolOptions{UserAgent: "vcdctl/" + version.String()})
}

// open logs in with the login that resolve returns. The caller must call logout.
func (p *program) open(ctx context.Context, want request) (_ *vcd.Session, logout func(), _ error) {
	config, err := p.resolve(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	return login(ctx, config)
}

// login logs in with a configuration. The caller must call logout.
func login(ctx context.Context, config vcd.Config) (_ *vcd.Session, logout func(), _ error) {
	pool := newPool()
	logout = func() { _ = pool.Close(context.WithoutCancel(ctx)) }
	session, err := pool.Session(ctx, config)
	if err != nil {
		logout()
		return nil, nil, fmt.Errorf("logging in: %w", err)
	}
	return session, logout, nil
}
