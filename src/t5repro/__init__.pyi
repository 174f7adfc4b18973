from t5repro.inference.load import load as load
from t5repro.inference.load import load_model as load_model
from t5repro.inference.load import load_network as load_network
from t5repro.inference.model import Model as Model
from t5repro.inference.model import Prediction as Prediction
from t5repro.inference.run import Run as Run

__version__: str
